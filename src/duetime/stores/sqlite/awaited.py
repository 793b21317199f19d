"""Jobs somebody in this process waits for. Whoever finds that one has ended takes it out, and so tells of it once."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from uuid import UUID

from duetime.model.hint import DoneHint
from duetime.stores.sqlite.rows import uuid_of
from duetime.stores.sqlite.session import Row, Session


class Awaited:
    """Used by the event loop, the writer and the watcher, each on a thread of its own."""

    def __init__(self) -> None:
        self._ids: set[bytes] = set()
        self._lock = Lock()

    def __bool__(self) -> bool:
        return bool(self._ids)

    def add(self, job_id: UUID) -> None:
        with self._lock:
            self._ids.add(job_id.bytes)

    def discard(self, job_id: UUID) -> None:
        with self._lock:
            self._ids.discard(job_id.bytes)

    def ended(self, rows: Iterable[Row]) -> list[DoneHint]:
        """Of jobs that have just ended (the first column is the id), those somebody waits for."""
        with self._lock:
            gone = self._ids.intersection([bytes(row[0]) for row in rows])
            self._ids -= gone
        return [DoneHint(uuid_of(job_id)) for job_id in gone]

    def vanished(self, session: Session) -> list[DoneHint]:
        """Those that are no live jobs any more."""
        with self._lock:
            waited_for = [(job_id,) for job_id in self._ids]
        return self.ended(session.all_many("vanished", waited_for))

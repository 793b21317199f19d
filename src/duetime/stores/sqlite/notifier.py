"""Hints: listeners in this process, and the thread that polls the file for changes made by other
processes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Event, Lock, Thread
from uuid import UUID

from duetime.model.hint import CancelHint, DoneHint, EventHint, Hint, JobHint, ScheduleHint
from duetime.model.job import HIGHEST_PRIORITY
from duetime.model.lease import NodeId
from duetime.store import Unsubscribe
from duetime.stores.sql.queues import lanes
from duetime.stores.sql.rows import uuid_of
from duetime.stores.sql.session import Row, run_now
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.session import SqliteSession
from duetime.stores.sqlite.threads import call_on

# A look costs a tenth of a millisecond: often while others write, less often when nothing has changed for a
# while.
BUSY_SECONDS, QUIET_SECONDS, LOOKS_UNTIL_QUIET = 0.01, 0.05, 200
START_TIMEOUT_SECONDS, RETRY_SECONDS = 1.0, 1.0
MAX_QUEUES = 100  # that a look compares; the sweep of a worker finds others
LOOK_AT_EVERYTHING: tuple[Hint, ...] = (
    JobHint("*", HIGHEST_PRIORITY, 0),
    ScheduleHint(0),
)  # the change may be urgent

Listener = Callable[[Hint], None]


class AwaitedJobs:
    """Jobs whose end a caller in this process waits for. Each is announced once. Used by the event loop, the
    writer and the poller, each on a thread of its own."""

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
        """Hints for the awaited ones among jobs that have ended; the first column is the id."""
        with self._lock:
            gone = self._ids.intersection([bytes(row[0]) for row in rows])
            self._ids -= gone
        return [DoneHint(uuid_of(job_id)) for job_id in gone]

    def no_longer_live(self, session: SqliteSession) -> list[DoneHint]:
        with self._lock:
            awaited = [(job_id,) for job_id in self._ids]
        return self.ended(run_now(session.all_many("no_longer_live", awaited)))


class SqliteNotifier:
    """Calls each listener on the event loop on which it subscribed. The poller runs only while there are
    listeners."""

    def __init__(self, path: Path, own_changes: Callable[[], int]) -> None:
        self.path = path
        self.own_changes = own_changes
        self.awaited = AwaitedJobs()
        self.poller: ChangePoller | None = None
        self._listeners: tuple[tuple[asyncio.AbstractEventLoop, Listener], ...] = ()

    def subscribe(self, listener: Listener) -> Unsubscribe:
        subscription = (asyncio.get_running_loop(), listener)
        self._listeners += (subscription,)
        if self.poller is None:
            self.poller = ChangePoller(self)
        return lambda: self._unsubscribe(subscription)

    def notify(self, hints: Sequence[Hint]) -> None:
        """From any thread."""
        for loop in {loop for loop, _ in self._listeners}:
            call_on(loop, self._call_listeners, (loop, hints))

    def close(self) -> None:
        self._listeners = ()
        if self.poller is not None:
            self.poller.stop()
            self.poller = None

    def _call_listeners(self, notification: tuple[asyncio.AbstractEventLoop, Sequence[Hint]]) -> None:
        loop, hints = notification
        for hint in hints:
            for subscribed_on, listener in self._listeners:
                if subscribed_on is loop:
                    listener(hint)

    def _unsubscribe(self, subscription: tuple[asyncio.AbstractEventLoop, Listener]) -> None:
        kept = tuple(known for known in self._listeners if known is not subscription)
        if not kept:
            self.close()
        self._listeners = kept


class ForeignChanges:
    """Whether another process changed something that listeners should know; asked on one connection, again
    and again."""

    def __init__(self, connection: sqlite3.Connection, notifier: SqliteNotifier) -> None:
        self._session = SqliteSession(connection)
        self._own_changes = notifier.own_changes
        self._awaited = notifier.awaited
        self._version: int | None = None  # so that the first look finds jobs that have ended already
        self._seen = self._count()
        self._last_event = int(run_now(self._session.value("last_event")))
        self._lanes = self._known_lanes()

    def look(self) -> tuple[Hint, ...]:
        """SQLite tells cheaply whether there was any commit; heartbeats, for example, do not raise the
        counter."""
        version = int(self._session.connection.execute("PRAGMA data_version").fetchone()[0])
        if version == self._version:
            return ()
        self._version = version
        found: list[Hint] = [*self._awaited.no_longer_live(self._session)] if self._awaited else []
        found += self._events()
        count = self._count()
        if count <= self._seen:
            return tuple(found)
        self._seen = count
        cancels = [
            CancelHint(NodeId(node), uuid_of(job_id))
            for node, job_id in run_now(self._session.all("cancels"))
        ]
        return (*self._new_lanes(), *LOOK_AT_EVERYTHING, *cancels, *found)

    def _new_lanes(self) -> list[Hint]:
        """By name: a worker does not look into a lane that it does not know."""
        known, self._lanes = self._lanes, self._known_lanes()
        return [JobHint(queue, priority, 0, tenant) for queue, priority, tenant in self._lanes - known]

    def _known_lanes(self) -> set[Row]:
        return {tuple(row) for row in run_now(lanes(self._session, "", MAX_QUEUES))}

    def _events(self) -> list[Hint]:
        last, self._last_event = self._last_event, int(run_now(self._session.value("last_event")))
        return [EventHint(self._last_event)] if self._last_event > last else []

    def _count(self) -> int:
        """Changes of other processes. Our own are counted before they can be seen, so this may be too low
        until our commit is done."""
        return int(run_now(self._session.value("read_changes"))) - self._own_changes()


class ChangePoller:
    """A thread that looks for foreign changes and notifies the listeners."""

    def __init__(self, notifier: SqliteNotifier) -> None:
        self._notifier = notifier
        self._started = Event()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="duetime sqlite poller", daemon=True)
        self._thread.start()
        # Changes from here on are noticed. If the file cannot be read, verbs report it.
        self._started.wait(START_TIMEOUT_SECONDS)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._poll()
            except sqlite3.Error:
                self._stop.wait(RETRY_SECONDS)  # hints may be lost

    def _poll(self) -> None:
        connection = connect(self._notifier.path)
        try:
            changes = ForeignChanges(connection, self._notifier)
            self._started.set()
            quiet_looks = 0
            while not self._stop.wait(BUSY_SECONDS if quiet_looks < LOOKS_UNTIL_QUIET else QUIET_SECONDS):
                quiet_looks += 1
                if hints := changes.look():
                    quiet_looks = 0
                    self._notifier.notify(hints)
        finally:
            connection.close()

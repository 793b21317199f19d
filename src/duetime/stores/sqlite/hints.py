"""Who wants to hear of changes, and the watcher that notices those made by other processes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread

from duetime.model.hint import CancelHint, EventHint, Hint, JobHint, ScheduleHint
from duetime.model.job import HIGHEST_PRIORITY
from duetime.model.lease import NodeId
from duetime.store import Unsubscribe
from duetime.stores.sqlite.awaited import Awaited
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.rows import uuid_of
from duetime.stores.sqlite.session import Session
from duetime.stores.sqlite.thread import call_on

# A look costs a tenth of a millisecond: often while others are at work, seldom when nothing has come for a while.
BUSY_SECONDS, QUIET_SECONDS, LOOKS_UNTIL_QUIET = 0.01, 0.05, 200
START_SECONDS, RETRY_SECONDS = 1.0, 1.0
LOOK_AT_EVERYTHING: tuple[Hint, ...] = (JobHint("*", HIGHEST_PRIORITY, 0), ScheduleHint(0))  # what was written may be urgent

Listener = Callable[[Hint], None]


class Listeners:
    """Each is called on the event loop on which it subscribed. The watcher runs only while there are any."""

    def __init__(self, path: Path, own_pulses: Callable[[], int], awaited: Awaited) -> None:
        self._path = path
        self._own_pulses = own_pulses
        self._awaited = awaited
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[Listener, ...]] = {}
        self._watcher: Watcher | None = None

    def add(self, listener: Listener) -> Unsubscribe:
        loop = asyncio.get_running_loop()
        self._by_loop = {**self._by_loop, loop: (*self._by_loop.get(loop, ()), listener)}
        if self._watcher is None:
            self._watcher = Watcher(self._path, self._own_pulses, self._awaited, self.tell)
        return lambda: self._remove(loop, listener)

    def tell(self, hints: Sequence[Hint]) -> None:
        """From any thread."""
        for loop in self._by_loop:
            call_on(loop, self._call, (loop, hints))

    def close(self) -> None:
        self._by_loop = {}
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None

    def _call(self, told: tuple[asyncio.AbstractEventLoop, Sequence[Hint]]) -> None:
        loop, hints = told
        for hint in hints:
            for listener in self._by_loop.get(loop, ()):
                listener(hint)

    def _remove(self, loop: asyncio.AbstractEventLoop, listener: Listener) -> None:
        kept = list(self._by_loop.get(loop, ()))
        if listener in kept:
            kept.remove(listener)
        others = {known: listeners for known, listeners in self._by_loop.items() if known is not loop}
        self._by_loop = {**others, loop: tuple(kept)} if kept else others
        if not self._by_loop:
            self.close()


class Pulse:
    """Whether another process wrote something to wake up for; asked on one connection, again and again."""

    def __init__(self, connection: sqlite3.Connection, own_pulses: Callable[[], int], awaited: Awaited) -> None:
        self._session = Session(connection)
        self._own_pulses = own_pulses
        self._awaited = awaited
        self._version: int | None = None  # so that the first look finds what ended before there was anybody to see it
        self._foreign = self._foreign_pulses()
        self._last_event = int(self._session.value("last_event"))
        self._queues = self._known_queues()

    def look(self) -> tuple[Hint, ...]:
        """SQLite says cheaply whether anybody committed at all; heartbeats, for one, do not raise the pulse."""
        version = self._data_version()
        if version == self._version:
            return ()
        self._version = version
        news: list[Hint] = [*self._awaited.vanished(self._session)] if self._awaited else []
        news += self._events()
        foreign = self._foreign_pulses()
        if foreign <= self._foreign:
            return tuple(news)
        self._foreign = foreign
        return (*self._new_queues(), *LOOK_AT_EVERYTHING, *self._cancels(), *news)

    def _new_queues(self) -> list[Hint]:
        """Told by name: whoever does not know a queue yet would not look into it."""
        known, self._queues = self._queues, self._known_queues()
        return [JobHint(name, HIGHEST_PRIORITY, 0) for name in self._queues - known]

    def _known_queues(self) -> set[str]:
        return {name for (name,) in self._session.all("queue_names")}

    def _events(self) -> list[Hint]:
        last, self._last_event = self._last_event, int(self._session.value("last_event"))
        return [EventHint(self._last_event)] if self._last_event > last else []

    def _data_version(self) -> int:
        return int(self._session.connection.execute("PRAGMA data_version").fetchone()[0])

    def _foreign_pulses(self) -> int:
        """Our own are counted before they can be seen, so this errs towards fewer, and only until our commit is through."""
        return int(self._session.value("read_pulse")) - self._own_pulses()

    def _cancels(self) -> list[Hint]:
        return [CancelHint(NodeId(node), uuid_of(job_id)) for node, job_id in self._session.all("cancels")]


class Watcher:
    """A thread that feels the pulse and tells what it finds."""

    def __init__(self, path: Path, own_pulses: Callable[[], int], awaited: Awaited, tell: Callable[[Sequence[Hint]], None]) -> None:
        self._path = path
        self._own_pulses = own_pulses
        self._awaited = awaited
        self._tell = tell
        self._watching = Event()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="duetime sqlite watcher", daemon=True)
        self._thread.start()
        # Whatever others write from here on is heard; should the file be out of reach, verbs report it.
        self._watching.wait(START_SECONDS)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._watch()
            except sqlite3.Error:
                self._stop.wait(RETRY_SECONDS)  # hints may be lost

    def _watch(self) -> None:
        connection = connect(self._path)
        try:
            pulse = Pulse(connection, self._own_pulses, self._awaited)
            self._watching.set()
            looks_in_vain = 0
            while not self._stop.wait(BUSY_SECONDS if looks_in_vain < LOOKS_UNTIL_QUIET else QUIET_SECONDS):
                looks_in_vain += 1
                if hints := pulse.look():
                    looks_in_vain = 0
                    self._tell(hints)
        finally:
            connection.close()

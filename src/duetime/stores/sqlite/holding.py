"""The connection that tasks write through, on a thread of its own: one transaction at a time, and none for long.

SQLite has one writer. While a task holds its transaction open nobody else can write, in any process: no claim, no result, no heartbeat.
So it is held for a few seconds at most, others are let through in between, and leases are not charged for the time.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import Empty
from threading import Event
from typing import Any

from duetime.clock import monotonic_micros, wall_micros
from duetime.errors import StoreError, StoreUnavailable
from duetime.model.instant import SECOND, Micros
from duetime.model.settle import Settlement
from duetime.stores.sqlite import faults, settling
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.entrance import Entrance
from duetime.stores.sqlite.session import Session, Transaction
from duetime.stores.sqlite.thread import Request, ServingThread, deliver

HOLD_LIMIT = 5 * SECOND
QUEUE_LIMIT = 30 * SECOND
LONG = SECOND // 10  # held for longer than this, a transaction makes up for it to all leases
PASS_SECONDS = 0.25
# After this much time of one transaction after another comes a gap, longer than a writer of another process waits between its tries.
MOST_WITHOUT_GAP, GAP = SECOND // 100, SECOND // 500
OPERATIONS_BETWEEN_LOOKS = 50_000  # of SQLite's machine: a few milliseconds

EXPIRED = (
    f"the transaction of this task was open for more than {HOLD_LIMIT // SECOND} s and was rolled back, since nobody else can write to the"
    " file meanwhile: begin it after the slow part of the task, and await nothing else of Duetime within it; or use postgresql://"
)
OVER = "the transaction of this task has ended: nothing can be read or written through its connection any more"
BROKEN = "SQLite ended the transaction of this task because of an error in it, and rolled everything back: let the error end the task"
CLOSED = "the store was closed, and the transaction of this task rolled back"


class Hold:
    """One task's transaction; `ended` says why it can be used no more."""

    __slots__ = ("ended", "since")

    def __init__(self) -> None:
        self.since: Micros = monotonic_micros()
        self.ended: str | None = None


class Begin:
    """The wish for a transaction: served as soon as the one before has ended."""

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self.asked_at = monotonic_micros()

    def __call__(self, holder: Holder) -> Hold:
        return holder.begin(self)


class Holder:
    """What the thread runs. All of it is called on the thread."""

    def __init__(self, path: Path, committed: Callable[[list[Transaction]], None]) -> None:
        self._path = path
        self._committed = committed
        self._entrance = Entrance(path, self._open)
        self._pause = Event()
        self._connection: sqlite3.Connection | None = None
        self._hold: Hold | None = None
        self._wishes: deque[Request[Holder]] = deque()
        self._busy_since: Micros = 0
        self._free_since: Micros = 0

    def serve(self, requests: list[Request[Holder]]) -> None:
        for request in requests:
            if isinstance(request.work, Begin):
                self._wishes.append(request)
            else:
                self._answer(request)
        while self._hold is None and self._wishes:
            self._answer(self._wishes.popleft())

    def close(self) -> None:
        if self._hold is not None:
            self._undo(self._hold, CLOSED)
        for request in self._wishes:
            request.error = StoreUnavailable(CLOSED)
        deliver(list(self._wishes))
        self._wishes.clear()
        self._entrance.close()
        self._forget_connection()

    @property
    def seconds_left(self) -> float | None:
        return None if self._hold is None else max(0.0, (self._hold.since + HOLD_LIMIT - monotonic_micros()) / SECOND)

    def expire(self) -> None:
        if self._hold is not None:
            self._undo(self._hold, EXPIRED)
        self.serve([])

    # -- one transaction ----------------------------------------------------------------------------------------------
    def begin(self, wish: Begin) -> Hold:
        if wish.hold.ended is not None:
            raise StoreError(wish.hold.ended)
        if monotonic_micros() - wish.asked_at > QUEUE_LIMIT:
            raise StoreUnavailable(
                f"{self._path}: transactions of other tasks kept this one waiting too long: repeat later, keep them short"
            )
        self._let_others_pass()
        connection = self._entrance.begin()
        connection.execute("SAVEPOINT duetime_task")
        self._hold, wish.hold.since = wish.hold, monotonic_micros()
        return wish.hold

    def perform(self, hold: Hold, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """A statement of the task's own. Its errors are the task's, too."""
        connection = self._usable(hold)
        try:
            return work(connection)
        except sqlite3.OperationalError:
            if monotonic_micros() < hold.since + HOLD_LIMIT:
                raise
            self._undo(hold, EXPIRED)
            raise StoreError(EXPIRED) from None
        finally:
            if not connection.in_transaction and hold.ended is None:
                self._undo(hold, BROKEN)

    def finish(self, hold: Hold, settlement: Settlement) -> bool:
        connection = self._usable(hold)
        connection.set_progress_handler(None, 0)
        try:
            transaction = Transaction(connection, wall_micros())
            if settling.write(transaction, [settlement]) != 1:
                self._undo(hold, OVER)
                return False
            if transaction.pulse:
                transaction.change("raise_pulse")
            self._spare_leases(hold, connection)
            connection.execute("COMMIT")
        except sqlite3.Error:
            self._undo(hold, BROKEN)
            raise
        self._end(hold, OVER)
        self._committed([transaction])
        return True

    def abandon(self, hold: Hold) -> None:
        if hold is self._hold:
            self._undo(hold, OVER)
        elif hold.ended is None:
            hold.ended = OVER

    # -- parts --------------------------------------------------------------------------------------------------------
    def _answer(self, request: Request[Holder]) -> None:
        if isinstance(request.work, Begin) and request.future.cancelled():
            return
        try:
            request.answer = request.work(self)
        except sqlite3.Error as problem:
            own = isinstance(request.work, Statement)
            request.error = problem if own else faults.translate(problem, self._path)
        except Exception as problem:
            request.error = problem
        deliver([request])

    def _usable(self, hold: Hold) -> sqlite3.Connection:
        if hold.ended is not None or self._connection is None:
            raise StoreError(hold.ended or OVER)
        self._connection.set_progress_handler(lambda: monotonic_micros() > hold.since + HOLD_LIMIT, OPERATIONS_BETWEEN_LOOKS)
        return self._connection

    def _undo(self, hold: Hold, reason: str) -> None:
        """Roll back, and make up to the leases before anybody else can write."""
        connection = self._connection
        assert connection is not None
        connection.set_progress_handler(None, 0)
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK TO duetime_task")
                self._spare_leases(hold, connection)
                connection.execute("COMMIT")
        except sqlite3.Error:
            self._forget_connection()
        self._end(hold, reason)

    def _end(self, hold: Hold, reason: str) -> None:
        hold.ended, self._hold, self._free_since = reason, None, monotonic_micros()

    @staticmethod
    def _spare_leases(hold: Hold, connection: sqlite3.Connection) -> None:
        held = monotonic_micros() - hold.since
        if held > LONG:
            Session(connection).change("spare_leases", (held,))

    def _let_others_pass(self) -> None:
        """Those of this process can be counted; for those of others there is a gap now and then."""
        self._entrance.let_others_pass(PASS_SECONDS)
        now = monotonic_micros()
        if now - self._free_since > GAP:
            self._busy_since = now
        elif now - self._busy_since > MOST_WITHOUT_GAP:
            self._pause.wait(GAP / SECOND)
            self._busy_since = monotonic_micros()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self._path, busy_milliseconds=0)
        return self._connection

    def _forget_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Statement:
    """Something a task does on its connection."""

    def __init__(self, hold: Hold, work: Callable[[sqlite3.Connection], Any]) -> None:
        self._hold = hold
        self._work = work

    def __call__(self, holder: Holder) -> Any:
        return holder.perform(self._hold, self._work)


class HoldingThread(ServingThread[Holder]):
    """Looks after the time of whoever holds the lock, even if nobody asks for anything."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        super().__init__("duetime sqlite tasks", holder)

    def _next(self) -> Request[Holder] | None:
        while True:
            try:
                return self._waiting.get(timeout=self._holder.seconds_left)
            except Empty:
                self._holder.expire()

    def _serve(self, requests: list[Request[Holder]]) -> None:
        """Each gets its answer when it has one: a wish may have to wait."""
        self._holder.serve(requests)

    def put(self, work: Callable[[Holder], Any]) -> None:
        """Without waiting for the outcome."""
        with self._gate:
            if not self._closed:
                self._waiting.put(Request(work))

"""The transactions in which tasks write, on a thread of their own: one at a time, and none for long.

SQLite has one writer. While a task keeps its transaction open, no other connection of any process can write:
no claim, no result, no heartbeat. Therefore a transaction may stay open for a few seconds at most, others
write in between, and leases are extended by the time."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty
from threading import Event
from typing import Any

from duetime.clock import monotonic_micros, wall_micros
from duetime.errors import NotOpen, StoreError, StoreUnavailable
from duetime.model.instant import SECOND, Micros
from duetime.model.settle import Settlement
from duetime.stores.sql import settle
from duetime.stores.sql.session import run_now
from duetime.stores.sqlite import errors
from duetime.stores.sqlite.session import SqliteSession, SqliteTransaction
from duetime.stores.sqlite.task_connection import SqliteTaskConnection, Statement
from duetime.stores.sqlite.threads import ConnectionThread, ThreadRequest, deliver
from duetime.stores.sqlite.write_lock import WriteLock

OPEN_TIMEOUT = 5 * SECOND
QUEUE_TIMEOUT = 30 * SECOND
LONG = SECOND // 10  # a transaction that was open for longer extends all leases by the time
# After so much time of one transaction after another there is a gap, longer than a writer waits between its
# tries.
MAX_WITHOUT_GAP, GAP = SECOND // 100, SECOND // 500
OPERATIONS_BETWEEN_CHECKS = 50_000  # of SQLite's virtual machine: a few milliseconds

EXPIRED = (
    f"the transaction of this task was open for more than {OPEN_TIMEOUT // SECOND} s and was rolled "
    "back, because no other process can"
    " write to the file meanwhile: begin it after the slow part of the task, and await nothing else of "
    "Duetime within it; or use postgresql://"
)
ENDED = (
    "the transaction of this task has ended: nothing can be read or written through its connection any more"
)
BROKEN = (
    "SQLite ended the transaction of this task because of an error in it, and rolled everything back: let "
    "the error end the task"
)
CLOSED = "the store was closed, and the transaction of this task rolled back"


class OpenTransaction:
    """One task's transaction, waiting or open; `ended` says why it can no longer be used."""

    __slots__ = ("asked_at", "ended", "since")

    def __init__(self) -> None:
        self.asked_at: Micros = monotonic_micros()
        self.since: Micros = self.asked_at
        self.ended: str | None = None


class _Begin:
    """The request for a transaction: served when the one before has ended."""

    def __init__(self, opened: OpenTransaction) -> None:
        self.opened = opened

    def __call__(self, owner: TaskTransactions) -> None:
        owner.begin(self.opened)


class _Execute:
    """A statement of the task."""

    def __init__(self, opened: OpenTransaction, statement: Statement) -> None:
        self._opened = opened
        self._statement = statement

    def __call__(self, owner: TaskTransactions) -> Any:
        return owner.execute(self._opened, self._statement)


class TaskTransactions:
    """Owns the connection. All its methods are called on the thread."""

    def __init__(self, path: Path, committed: Callable[[list[SqliteTransaction]], None]) -> None:
        self._path = path
        self._committed = committed
        self._lock = WriteLock(path)
        self._pause = Event()
        self._open: OpenTransaction | None = None
        self._waiting: deque[ThreadRequest[TaskTransactions]] = deque()
        self._busy_since: Micros = 0
        self._free_since: Micros = 0

    def serve(self, requests: list[ThreadRequest[TaskTransactions]]) -> None:
        """Each request gets its answer when there is one: a transaction may have to wait for the one
        before."""
        for request in requests:
            if isinstance(request.work, _Begin):
                self._waiting.append(request)
            else:
                self._answer(request)
        while self._open is None and self._waiting:
            self._answer(self._waiting.popleft())

    def close(self) -> None:
        if self._open is not None:
            self._roll_back(self._open, CLOSED)
        for request in self._waiting:
            request.error = StoreUnavailable(CLOSED)
        deliver(list(self._waiting))
        self._waiting.clear()
        self._lock.close()

    @property
    def seconds_left(self) -> float | None:
        return (
            None
            if self._open is None
            else max(0.0, (self._open.since + OPEN_TIMEOUT - monotonic_micros()) / SECOND)
        )

    def expire(self) -> None:
        if self._open is not None:
            self._roll_back(self._open, EXPIRED)
        self.serve([])

    # -- one transaction
    def begin(self, opened: OpenTransaction) -> None:
        if opened.ended is not None:
            raise StoreError(opened.ended)
        if monotonic_micros() - opened.asked_at > QUEUE_TIMEOUT:
            raise StoreUnavailable(
                f"{self._path}: transactions of other tasks kept this one waiting too long: repeat "
                "later, keep them short"
            )
        self._let_others_write()
        self._lock.begin().execute("SAVEPOINT duetime_task")
        self._open, opened.since = opened, monotonic_micros()

    def execute(self, opened: OpenTransaction, statement: Statement) -> Any:
        """Errors of the statement are the task's."""
        connection = self._usable(opened)
        try:
            return statement(connection)
        except sqlite3.OperationalError:
            if monotonic_micros() < opened.since + OPEN_TIMEOUT:
                raise
            self._roll_back(opened, EXPIRED)
            raise StoreError(EXPIRED) from None
        finally:
            if not connection.in_transaction and opened.ended is None:
                self._roll_back(opened, BROKEN)

    def finish(self, opened: OpenTransaction, settlement: Settlement) -> bool:
        connection = self._usable(opened)
        connection.set_progress_handler(None, 0)
        try:
            transaction = SqliteTransaction(connection, wall_micros())
            if run_now(settle.write(transaction, [settlement]))[0] != 1:
                self._roll_back(opened, ENDED)
                return False
            transaction.count_change()
            self._extend_leases(opened, connection)
            connection.execute("COMMIT")
        except sqlite3.Error:
            self._roll_back(opened, BROKEN)
            raise
        self._end(opened, ENDED)
        self._committed([transaction])
        return True

    def abandon(self, opened: OpenTransaction) -> None:
        if opened is self._open:
            self._roll_back(opened, ENDED)
        elif opened.ended is None:
            opened.ended = ENDED

    # -- parts
    def _answer(self, request: ThreadRequest[TaskTransactions]) -> None:
        if isinstance(request.work, _Begin) and request.future.cancelled():
            return
        try:
            request.perform(self)
        except Exception as problem:
            request.error = (
                problem if isinstance(request.work, _Execute) else errors.translate(problem, self._path)
            )
        deliver([request])

    def _usable(self, opened: OpenTransaction) -> sqlite3.Connection:
        connection = self._lock.connection
        if opened.ended is not None or connection is None:
            raise StoreError(opened.ended or ENDED)
        connection.set_progress_handler(
            lambda: monotonic_micros() > opened.since + OPEN_TIMEOUT, OPERATIONS_BETWEEN_CHECKS
        )
        return connection

    def _roll_back(self, opened: OpenTransaction, reason: str) -> None:
        """Roll back, and extend the leases before another process can write."""
        connection = self._lock.connection
        assert connection is not None
        connection.set_progress_handler(None, 0)
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK TO duetime_task")
                self._extend_leases(opened, connection)
                connection.execute("COMMIT")
        except sqlite3.Error:
            self._lock.close_connection()
        self._end(opened, reason)

    def _end(self, opened: OpenTransaction, reason: str) -> None:
        opened.ended, self._open, self._free_since = reason, None, monotonic_micros()

    @staticmethod
    def _extend_leases(opened: OpenTransaction, connection: sqlite3.Connection) -> None:
        duration = monotonic_micros() - opened.since
        if duration > LONG:
            run_now(SqliteSession(connection).change("extend_leases", (duration,)))

    def _let_others_write(self) -> None:
        """Where the system has byte locks, waiting writers are in the queue already; elsewhere they get a gap
        now and then."""
        now = monotonic_micros()
        if now - self._free_since > GAP:
            self._busy_since = now
        elif now - self._busy_since > MAX_WITHOUT_GAP:
            self._pause.wait(GAP / SECOND)
            self._busy_since = monotonic_micros()


class TaskTransactionThread(ConnectionThread[TaskTransactions]):
    """Ends a transaction that is open for too long, even if no request comes."""

    def __init__(self, path: Path, committed: Callable[[list[SqliteTransaction]], None]) -> None:
        self._transactions = TaskTransactions(path, committed)
        super().__init__("duetime sqlite tasks", self._transactions)

    async def begin(self) -> SqliteTaskTransaction:
        opened = OpenTransaction()
        try:
            await self.call(_Begin(opened))
        except BaseException:
            with suppress(NotOpen):  # it may have begun after its caller gave up
                self._put(ThreadRequest(lambda owner: owner.abandon(opened)))
            raise
        return SqliteTaskTransaction(self, opened)

    def _next(self) -> ThreadRequest[TaskTransactions]:
        while True:
            try:
                return self._waiting.get(timeout=self._transactions.seconds_left)
            except Empty:
                self._transactions.expire()

    def _serve(self, requests: list[ThreadRequest[TaskTransactions]]) -> None:
        self._transactions.serve(requests)


class SqliteTaskTransaction:
    """A store.TaskTransaction: the task's writes and its settlement, together or not at all."""

    def __init__(self, thread: TaskTransactionThread, opened: OpenTransaction) -> None:
        self._thread = thread
        self._opened = opened
        self.connection: Any = SqliteTaskConnection(self._execute, lambda: opened.ended is None)

    async def finish(self, settlement: Settlement) -> bool:
        return await self._thread.call(lambda owner: owner.finish(self._opened, settlement))

    async def abandon(self) -> bool:
        if self._opened.ended is None:
            await self._thread.call(lambda owner: owner.abandon(self._opened))
        return True

    async def _execute(self, statement: Statement) -> Any:
        return await self._thread.call(_Execute(self._opened, statement))

"""Transactions in which a task writes: in sessions of their own, with the driver's defaults, where instants
are datetimes.

The task's writes and the completion of its job are committed together, or neither is."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from duetime.errors import DuetimeError, NotOpen, StoreError, StoreUnavailable
from duetime.model.instant import Micros
from duetime.model.settle import Settlement
from duetime.stores.postgres.address import PostgresAddress
from duetime.stores.postgres.claim import hints_of
from duetime.stores.postgres.connect import connect
from duetime.stores.postgres.connection import CALL_TIMEOUT
from duetime.stores.postgres.connections import SQL
from duetime.stores.postgres.errors import DRIVER_ERRORS, classify, translate
from duetime.stores.postgres.notifier import Notifier
from duetime.stores.postgres.settle import NO_SUCCESSORS

MAX_SESSIONS = 20
# Statements of a task may take longer than those of the store; an abandoned transaction must not hold its
# locks for long.
TASK_TIMEOUTS = {
    "statement_timeout": "60000",
    "lock_timeout": "10000",
    "idle_in_transaction_session_timeout": "60000",
}
ROLLBACK_TIMEOUT = 2.0  # seconds, before the session is simply closed
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TaskSessions:
    """Opened when needed, kept for the next task, at most MAX_SESSIONS."""

    def __init__(self, address: PostgresAddress, notifier: Notifier) -> None:
        self.address = address
        self.notifier = notifier
        self._idle: list[Any] = []
        self._lent: set[Any] = set()
        self._free = asyncio.Semaphore(MAX_SESSIONS)
        self._closed = False

    async def begin(self) -> PostgresTaskTransaction:
        await self._wait_for_free_session()
        try:
            # An idle session may be dead, and only its first statement shows it.
            begun = await self._begin_on(self._idle.pop()) if self._idle else None
            return begun or await self._begin_on_new()
        except DRIVER_ERRORS as problem:
            self._free.release()
            raise translate(problem, classify(problem), self.address.place) from problem
        except BaseException:
            self._free.release()
            raise

    async def give_back(self, session: Any, *, sound: bool) -> None:
        """A task may have left settings, listeners or locks behind: the next task must not find them."""
        try:
            if sound and not self._closed and not session.is_closed():
                if not self.address.pooled:
                    await session.reset(timeout=ROLLBACK_TIMEOUT)
                self._idle.append(session)
            else:
                session.terminate()
        except DRIVER_ERRORS:
            session.terminate()
        finally:
            self._lent.discard(session)
            self._free.release()

    def reopen(self) -> None:
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        for session in [*idle, *self._lent]:
            session.terminate()

    async def _wait_for_free_session(self) -> None:
        if self._closed:
            raise NotOpen("the store was closed: call open() before using it again")
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"{MAX_SESSIONS} tasks of this process have open transactions: repeat"
            ) from None

    async def _begin_on(self, session: Any) -> PostgresTaskTransaction | None:
        try:
            return await self._start(session)
        except DRIVER_ERRORS:
            session.terminate()
            return None
        except BaseException:  # the task was cancelled
            session.terminate()
            raise

    async def _begin_on_new(self) -> PostgresTaskTransaction:
        session = await self._connect()
        try:
            return await self._start(session)
        except BaseException:
            session.terminate()
            raise

    async def _start(self, session: Any) -> PostgresTaskTransaction:
        block = session.transaction()
        async with asyncio.timeout(CALL_TIMEOUT):
            await block.start()
            if self.address.pooled:
                await session.execute(
                    "; ".join(f"SET LOCAL {name} = {value}" for name, value in TASK_TIMEOUTS.items())
                )
        self._lent.add(session)
        return PostgresTaskTransaction(self, session, block)

    async def _connect(self) -> Any:
        settings = {**TASK_TIMEOUTS, "application_name": "duetime task"}
        # During a failover an address may lead to a standby. Such a session would be kept and lent again.
        return await connect(self.address, settings, cached_statements=100, sessions=("read-write",))


class PostgresTaskTransaction:
    def __init__(self, sessions: TaskSessions, connection: Any, block: Any) -> None:
        self.connection = connection
        self._sessions = sessions
        self._block = block
        self._over = False

    async def finish(self, settlement: Settlement) -> bool:
        if self._over:
            raise StoreError("the task's transaction is over already")
        if self.connection.is_closed():
            await self.abandon()
            raise StoreUnavailable(
                f"PostgreSQL at {self._sessions.address.place} ended the task's session: nothing was "
                "committed"
            )
        if not self.connection.is_in_transaction():
            await self.abandon()
            raise StoreError("the task ended its transaction itself: leave COMMIT and ROLLBACK to Duetime")
        try:
            news = await self._settle(settlement)
            if news is not None:
                await self._commit()
        except DRIVER_ERRORS as problem:
            await self.abandon()
            raise self._explain(problem) from problem
        except BaseException:
            await self.abandon()
            raise
        if news is None:
            await self.abandon()
            return False
        self._sessions.notifier.notify(hints_of(_in_micros(row) for row in news))
        return True

    async def abandon(self) -> bool:
        if self._over:
            return True
        self._over = True
        sound = False
        try:
            async with asyncio.timeout(ROLLBACK_TIMEOUT):
                await self._block.rollback()
            sound = True
        except DRIVER_ERRORS:
            pass  # the server rolls back the transaction of a lost session
        finally:
            intact = not self.connection.is_closed()
            await self._sessions.give_back(self.connection, sound=sound)
        return intact

    async def _settle(self, settlement: Settlement) -> list[Any] | None:
        """None when it was not written."""
        values: dict[str, Any] = settlement._asdict()
        for name in ("due_at", "started_at", "finished_at"):
            values[name] = None if values[name] is None else _datetime(values[name])
        columns = [[value] for value in values.values()]
        for _ in range(2):
            news: list[Any] = await self.connection.fetch(
                SQL["settle"], *columns, [1], *NO_SUCCESSORS, timeout=CALL_TIMEOUT
            )
            if not any(row["kind"] == "unwritten" for row in news):
                return news
            # A row that was touched (by a cancellation, say) between the statement's snapshot and its lock is
            # missed once.
        return None

    async def _commit(self) -> None:
        async with asyncio.timeout(CALL_TIMEOUT):
            await self._block.commit()
        self._over = True
        await self._sessions.give_back(self.connection, sound=True)

    def _explain(self, problem: BaseException) -> DuetimeError:
        if isinstance(problem, asyncpg.InFailedSQLTransactionError):
            return StoreError(
                "a statement of the task failed and aborted its transaction: raise the error, or use a "
                "savepoint"
            )
        return translate(problem, classify(problem), self._sessions.address.place)


def _datetime(micros: Micros) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def _in_micros(row: Any) -> dict[str, Any]:
    due_at = row["due_at"]
    return {**row, "due_at": None if due_at is None else (due_at - EPOCH) // timedelta(microseconds=1)}

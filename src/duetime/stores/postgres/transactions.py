"""Transactions in which a task writes: in sessions of their own, as the driver makes them, where instants are datetimes.

The task's writes and its job's completion are committed together, or neither is.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from duetime.errors import DuetimeError, NotOpen, StoreError, StoreUnavailable
from duetime.model.instant import Micros
from duetime.model.settle import Settlement
from duetime.stores.postgres.address import Address
from duetime.stores.postgres.bell import Bell
from duetime.stores.postgres.faults import judge, translate
from duetime.stores.postgres.line import BOUNDS, CONNECT_PATIENCE, PATIENCE, watch
from duetime.stores.postgres.lines import SQL
from duetime.stores.postgres.work import hints_of

MOST_SESSIONS = 20
# A task's statements may take longer than ours; one that is left in the middle must not hold its locks for ever.
LIMITS = {"statement_timeout": "60000", "lock_timeout": "10000", "idle_in_transaction_session_timeout": "60000"}
LAST_WORDS = 2.0  # seconds for a rollback, before the session is simply closed
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PROBLEMS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


class Sessions:
    """Opened when needed, kept for the next task, never more than a few."""

    def __init__(self, address: Address, bell: Bell) -> None:
        self.address = address
        self.bell = bell
        self._idle: list[Any] = []
        self._lent: set[Any] = set()
        self._room = asyncio.Semaphore(MOST_SESSIONS)
        self._closed = False

    async def begin(self) -> TaskTransaction:
        await self._wait_for_room()
        try:
            # A session that was kept may have died meanwhile, and then only the first statement shows it.
            begun = await self._begun(self._idle.pop()) if self._idle else None
            return begun or await self._begun_anew()
        except PROBLEMS as problem:
            self._room.release()
            raise translate(problem, judge(problem), self.address.place) from problem
        except BaseException:
            self._room.release()
            raise

    async def give_back(self, session: Any, *, sound: bool) -> None:
        """A task may have left settings, listeners or locks behind: the next one shall not find them."""
        try:
            if sound and not self._closed and not session.is_closed():
                if not self.address.pooled:
                    await session.reset(timeout=LAST_WORDS)
                self._idle.append(session)
            else:
                session.terminate()
        except PROBLEMS:
            session.terminate()
        finally:
            self._lent.discard(session)
            self._room.release()

    def reopen(self) -> None:
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        for session in [*idle, *self._lent]:
            session.terminate()

    async def _wait_for_room(self) -> None:
        if self._closed:
            raise NotOpen("the store was closed: call open() before using it again")
        try:
            async with asyncio.timeout(PATIENCE):
                await self._room.acquire()
        except TimeoutError:
            raise StoreUnavailable(f"{MOST_SESSIONS} tasks of this process are in transactions already: repeat") from None

    async def _begun(self, session: Any) -> TaskTransaction | None:
        try:
            return await self._start(session)
        except PROBLEMS:
            session.terminate()
            return None
        except BaseException:  # whoever wanted it was stopped meanwhile
            session.terminate()
            raise

    async def _begun_anew(self) -> TaskTransaction:
        session = await self._connect()
        try:
            return await self._start(session)
        except BaseException:
            session.terminate()
            raise

    async def _start(self, session: Any) -> TaskTransaction:
        block = session.transaction()
        async with asyncio.timeout(PATIENCE):
            await block.start()
            if self.address.pooled:
                await session.execute("; ".join(f"SET LOCAL {name} = {value}" for name, value in LIMITS.items()))
        self._lent.add(session)
        return TaskTransaction(self, session, block)

    async def _connect(self) -> Any:
        pooled = self.address.pooled
        session = await asyncpg.connect(
            self.address.dsn,
            timeout=CONNECT_PATIENCE,
            statement_cache_size=0 if pooled else 100,
            server_settings={} if pooled else {**BOUNDS, **LIMITS, "application_name": "duetime task"},
        )
        watch(session)
        return session


class TaskTransaction:
    def __init__(self, sessions: Sessions, connection: Any, block: Any) -> None:
        self.connection = connection
        self._sessions = sessions
        self._block = block
        self._over = False

    async def finish(self, settlement: Settlement) -> bool:
        if self._over:
            raise StoreError("the task's transaction is over already")
        if self.connection.is_closed():
            await self.abandon()
            raise StoreUnavailable(f"PostgreSQL at {self._sessions.address.place} ended the task's session: nothing was committed")
        if not self.connection.is_in_transaction():
            await self.abandon()
            raise StoreError("the task ended its transaction by itself: leave COMMIT and ROLLBACK to Duetime")
        try:
            settled = await self._settle(settlement)
            if settled:
                await self._commit()
        except PROBLEMS as problem:
            await self.abandon()
            raise self._explain(problem) from problem
        except BaseException:
            await self.abandon()
            raise
        if not settled:
            await self.abandon()
            return False
        self._sessions.bell.ring(hints_of([{**settled[0], "due_at": settlement.due_at}]))
        return True

    async def abandon(self) -> None:
        if self._over:
            return
        self._over = True
        sound = False
        try:
            async with asyncio.timeout(LAST_WORDS):
                await self._block.rollback()
            sound = True
        except PROBLEMS:
            pass  # a session that is gone has rolled back by itself
        finally:
            await self._sessions.give_back(self.connection, sound=sound)

    async def _settle(self, settlement: Settlement) -> list[Any]:
        values: dict[str, Any] = settlement._asdict()
        for name in ("due_at", "started_at", "finished_at"):
            values[name] = None if values[name] is None else _datetime(values[name])
        columns = [[value] for value in values.values()]
        rows: list[Any] = await self.connection.fetch(SQL["settle"], *columns, timeout=PATIENCE)
        # A row that was touched (asked to stop, say) between the statement's snapshot and its lock escapes it once.
        return rows or await self.connection.fetch(SQL["settle"], *columns, timeout=PATIENCE)

    async def _commit(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._block.commit()
        self._over = True
        await self._sessions.give_back(self.connection, sound=True)

    def _explain(self, problem: BaseException) -> DuetimeError:
        if isinstance(problem, asyncpg.InFailedSQLTransactionError):
            return StoreError("a statement of the task failed and spoiled its transaction: let the error out, or guard it by a savepoint")
        return translate(problem, judge(problem), self._sessions.address.place)


def _datetime(micros: Micros) -> datetime:
    return EPOCH + timedelta(microseconds=micros)

"""Transactions in which a task writes: in sessions of their own, with the driver's character set and the
server's sql_mode.

The task's writes and the completion of its job are committed together, or neither is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from asyncmy.constants.SERVER_STATUS import SERVER_STATUS_IN_TRANS
from asyncmy.errors import OperationalError

from duetime.errors import NotOpen, StoreError, StoreUnavailable
from duetime.model.hint import Hint
from duetime.model.settle import Settlement
from duetime.stores.mysql.address import MySqlAddress
from duetime.stores.mysql.connection import CALL_TIMEOUT, NOW, connect, row_word, say_goodbye
from duetime.stores.mysql.errors import DRIVER_ERRORS, classify, translate
from duetime.stores.mysql.literals import FOREIGN_LITERALS
from duetime.stores.mysql.notifier import MySqlNotifier
from duetime.stores.mysql.session import MySqlTransaction
from duetime.stores.mysql.session import query as run
from duetime.stores.named_row import NamedRow
from duetime.stores.sql import settle
from duetime.stores.sql.task_connection import SqlTaskConnection, replaced

MAX_SESSIONS = 20
# Statements of a task may take longer than those of the store; an abandoned transaction must not hold its
# locks for long.
SETTINGS = "SET SESSION innodb_lock_wait_timeout = 10, wait_timeout = 60, autocommit = 0"
# The mark is gone when the transaction has ended before its task: by a deadlock, or by a statement of the
# task. The server would begin another one, and commit only what came after.
BEGIN = "START TRANSACTION; SAVEPOINT duetime_begun"
CHECK = "RELEASE SAVEPOINT duetime_begun"
UNKNOWN_SAVEPOINT, DEADLOCK = 1305, 1213
ROLLED_BACK = "MariaDB rolled back the task's transaction to resolve a deadlock: repeat the task"
ROLLBACK_TIMEOUT = 2.0  # seconds, before the session is simply closed


class MySqlTaskConnection(SqlTaskConnection):
    """`driver` is the connection of asyncmy, for libraries that need it."""

    def __init__(self, driver: Any) -> None:
        super().__init__()
        self.driver = driver
        self.deadlock: BaseException | None = None  # with it the server rolled back all that the task wrote

    def is_in_transaction(self) -> bool:
        return bool(self.driver.connected) and self.deadlock is None  # autocommit is off

    async def perform(self, query: str, arguments: Sequence[Any]) -> tuple[Sequence[Any], int]:
        if self.deadlock is not None:
            raise StoreUnavailable(ROLLED_BACK) from self.deadlock
        text = replaced(query, lambda number: self._literal(arguments[number - 1]))
        try:
            [result] = await run(self.driver, text)
        except OperationalError as problem:
            if problem.args[0] == DEADLOCK:
                self.deadlock = problem
            raise
        answer = self.driver._result
        names = tuple(column[0] for column in answer.description or ())
        if not names and not answer.server_status & SERVER_STATUS_IN_TRANS:
            await run(self.driver, BEGIN)  # DDL has committed what the task wrote before
        kind = NamedRow.kind(names)
        return [kind(row) for row in result.rows], result.changed

    def _literal(self, value: Any) -> str:
        plain = value is None or isinstance(value, (str, bytes, bytearray, int))
        return FOREIGN_LITERALS[type(value)](value) if plain else str(self.driver.escape(value))


class MySqlTaskSessions:
    """Opened when needed, at most MAX_SESSIONS. Not kept for the next task: the driver cannot reset what a
    task may have left behind."""

    def __init__(self, address: MySqlAddress, notifier: MySqlNotifier) -> None:
        self.address = address
        self._notifier = notifier
        self._lent: set[Any] = set()
        self._free = asyncio.Semaphore(MAX_SESSIONS)
        self._closed = False

    async def begin(self) -> MySqlTaskTransaction:
        if self._closed:
            raise NotOpen("the store was closed: call open() before using it again")
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"{MAX_SESSIONS} tasks of this process have open transactions: repeat"
            ) from None
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                connection, _ = await connect(self.address)
                self._lent.add(connection)
                await run(connection, f"{SETTINGS}; {BEGIN}")
        except DRIVER_ERRORS as problem:  # a timeout, too
            self._free.release()
            raise translate(problem, classify(problem), self.address.place) from problem
        except BaseException:
            self._free.release()
            raise
        return MySqlTaskTransaction(self, connection)

    async def give_back(self, connection: Any) -> None:
        try:
            await say_goodbye(connection)
        finally:
            self._lent.discard(connection)
            self._free.release()

    def notify(self, hints: Sequence[Hint]) -> None:
        self._notifier.notify(hints)

    def reopen(self) -> None:
        self._closed = False

    def close(self) -> None:
        self._closed = True
        for connection in self._lent:
            connection.close()


class MySqlTaskTransaction:
    def __init__(self, sessions: MySqlTaskSessions, driver: Any) -> None:
        self.connection = MySqlTaskConnection(driver)
        self._driver = driver
        self._sessions = sessions
        self._over = False

    async def finish(self, settlement: Settlement) -> bool:
        if self._over:
            raise StoreError("the task's transaction is over already")
        place = self._sessions.address.place
        if not self._driver.connected:
            await self.abandon()
            raise StoreUnavailable(f"MariaDB at {place} ended the task's session: nothing was committed")
        if self.connection.deadlock is not None:
            await self.abandon()
            raise StoreUnavailable(ROLLED_BACK) from self.connection.deadlock
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                transaction = await self._settle(settlement)
                if transaction is not None:
                    await self._driver.commit()
        except DRIVER_ERRORS as problem:
            await self.abandon()
            if problem.args and problem.args[0] == UNKNOWN_SAVEPOINT:
                raise StoreError(
                    "the task's transaction ended before the task: leave COMMIT and ROLLBACK to Duetime, and "
                    "raise the error of a deadlock"
                ) from problem
            raise translate(problem, classify(problem), place) from problem
        except BaseException:
            await self.abandon()
            raise
        if transaction is None:
            await self.abandon()
            return False
        self._over = True
        await self._sessions.give_back(self._driver)
        self._sessions.notify(transaction.hints)
        return True

    async def abandon(self) -> bool:
        if self._over:
            return True
        self._over = True
        try:
            # The server rolls back the transaction of a session that is lost.
            with suppress(*DRIVER_ERRORS):
                async with asyncio.timeout(ROLLBACK_TIMEOUT):
                    await self._driver.rollback()
        finally:
            intact = bool(self._driver.connected)
            await self._sessions.give_back(self._driver)
        return intact

    async def _settle(self, settlement: Settlement) -> MySqlTransaction | None:
        """None when it was not written."""
        connection = self._driver
        _, [[(now,)], _] = await run(connection, f"{CHECK}; {NOW}")
        transaction = MySqlTransaction(
            lambda text: run(connection, text),
            now,
            row_word(connection),
            FOREIGN_LITERALS,
        )
        written, _ = await settle.write(transaction, [settlement])
        return transaction if written == 1 else None

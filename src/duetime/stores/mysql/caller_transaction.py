"""A caller's own connection, of any supported driver: jobs are stored in its open transaction and visible
when the caller commits.

Drivers are recognised by the names of their modules: none is imported here that the caller has not imported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

from duetime.errors import InvalidInput
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.store import CallerStore, CallerTransaction, RunOnOwner
from duetime.stores.hint_text import encode
from duetime.stores.mysql.literals import FOREIGN_LITERALS
from duetime.stores.mysql.session import MySqlResult, MySqlTransaction
from duetime.stores.mysql.task_transaction import UNKNOWN_SAVEPOINT, MySqlTaskConnection
from duetime.stores.sql import jobs
from duetime.stores.sql.session import run_now
from duetime.stores.sql.store import SqlStore

FIELD = "connection"
NO_TABLE = 1146

# Executes one statement; returns its rows, and how many it changed
Execute = Callable[[str], Awaitable[MySqlResult]]
Work = Callable[[MySqlTransaction], Coroutine[Any, Any, Any]]


class BlockingMySqlTransaction:
    """A connection without async."""

    blocking = True

    def __init__(self, cursor: Callable[[], Any], home: Micros | None) -> None:
        self._cursor = cursor
        self._home = home

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return self.add_jobs_now(drafts)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        cursor = self._cursor()
        try:
            return run_now(_add(_blocking(cursor), drafts, self._home))
        finally:
            cursor.close()

    def verbs(self, run: RunOnOwner) -> CallerStore:
        return MySqlCallerStore(lambda work: run(lambda: self._perform(work)))

    def _perform(self, work: Work) -> Any:
        cursor = self._cursor()
        try:
            return run_now(_perform(_blocking(cursor), work, self._home))
        finally:
            cursor.close()


class AsyncMySqlTransaction:
    blocking = False

    def __init__(self, open_cursor: Callable[[], Awaitable[Any]], home: Micros | None) -> None:
        self._open_cursor = open_cursor
        self._home = home

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        cursor = await self._open_cursor()
        try:
            return await _add(_awaiting(cursor), drafts, self._home)
        finally:
            await cursor.close()

    def verbs(self, run: RunOnOwner) -> CallerStore:
        return MySqlCallerStore(self._perform)

    async def _perform(self, work: Work) -> Any:
        cursor = await self._open_cursor()
        try:
            return await _perform(_awaiting(cursor), work, self._home)
        finally:
            await cursor.close()

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        raise InvalidInput(
            FIELD, "this connection is asynchronous: await the call from the event loop that uses it"
        )


class MySqlCallerStore(SqlStore):
    """Only the transaction of each verb is the caller's."""

    def __init__(self, perform: Callable[[Work], Awaitable[Any]]) -> None:
        self._perform = perform

    async def _write(self, role: str, work: Any, *arguments: Any, **named: Any) -> Any:
        return await self._perform(lambda transaction: work(transaction, *arguments, **named))

    _read = _write


def caller_transaction(connection: Any, home: Micros | None) -> CallerTransaction:
    """InvalidInput for a connection that cannot be used."""
    if isinstance(connection, MySqlTaskConnection):
        return _async_driver(connection.driver, home)
    for module, name, adapter in _ADAPTERS:
        if any(
            cls.__module__.startswith(module) and cls.__name__ == name for cls in type(connection).__mro__
        ):
            return adapter(connection, home)
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise InvalidInput(
        FIELD,
        f"a {kind} cannot be used: give a connection of asyncmy, aiomysql, PyMySQL or mysqlclient, a "
        "connection or session of SQLAlchemy 2, or Django's",
    )


async def _add(execute: Execute, drafts: Sequence[JobDraft], home: Micros | None) -> list[UUID]:
    if not drafts:
        return []
    ids: list[UUID] = await _perform(
        execute, lambda transaction: jobs.add(transaction, drafts, counted=False), home
    )
    return ids


async def _perform(execute: Execute, work: Work, home: Micros | None) -> Any:
    async def query(text: str) -> list[MySqlResult]:
        """One by one: a connection of a caller may refuse several statements in one text."""
        return [await execute(statement) for statement in text.split(";\n")]

    await _check_begun(execute)
    [(version,)] = (await execute("SELECT VERSION()")).rows
    row_word = "" if "MariaDB" in str(version) else "ROW"
    transaction = MySqlTransaction(query, 0, row_word, FOREIGN_LITERALS)
    try:
        _, made, _ = (await transaction.all("read_version"))[0]
    except Exception as problem:
        if _has_number(problem, NO_TABLE):
            raise InvalidInput(
                FIELD, "it belongs to a database without Duetime's tables: use the database of the jobs"
            ) from problem
        raise
    if made != home:
        raise InvalidInput(FIELD, "it belongs to another database than the jobs")
    transaction.now = await transaction.time()
    answer = await work(transaction)
    # Seen by the pollers of all processes, this one included, when the caller commits.
    await transaction.change_many("add_hints", [(0, encode(hint)) for hint in transaction.hints])
    return answer


async def _check_begun(execute: Execute) -> None:
    """Where no transaction is open a savepoint is gone immediately; MySQL cannot be asked in another way."""
    await execute("SAVEPOINT duetime_caller")
    try:
        await execute("RELEASE SAVEPOINT duetime_caller")
    except Exception as problem:
        if not _has_number(problem, UNKNOWN_SAVEPOINT):
            raise
        raise InvalidInput(
            FIELD, "no transaction is open on it, so nothing would commit the job: begin one first"
        ) from problem


def _has_number(problem: Exception, number: int) -> bool:
    """The server's number of an error, also where SQLAlchemy raised it."""
    return number in problem.args or number in getattr(getattr(problem, "orig", None), "args", ())


# -- cursors
def _blocking(cursor: Any) -> Execute:
    async def execute(statement: str) -> MySqlResult:
        cursor.execute(statement)
        if cursor.description is None:
            return MySqlResult((), cursor.rowcount)
        return MySqlResult([_plain(row) for row in cursor.fetchall()], 0)

    return execute


def _awaiting(cursor: Any) -> Execute:
    async def execute(statement: str) -> MySqlResult:
        await cursor.execute(statement)
        if cursor.description is None:
            return MySqlResult((), cursor.rowcount)
        return MySqlResult([_plain(row) for row in await cursor.fetchall()], 0)

    return execute


def _plain(row: Any) -> tuple[Any, ...]:
    return tuple(row.values()) if isinstance(row, dict) else tuple(row)


# -- adapters
def _driver(connection: Any, home: Micros | None) -> CallerTransaction:
    return BlockingMySqlTransaction(connection.cursor, home)


def _async_driver(connection: Any, home: Micros | None) -> CallerTransaction:
    async def open_cursor() -> Any:
        return await connection.cursor().__aenter__()

    return AsyncMySqlTransaction(open_cursor, home)


def _pool(connection: Any, home: Micros | None) -> CallerTransaction:
    raise InvalidInput(FIELD, "this is a pool: acquire a connection from it and begin a transaction there")


def _sqlalchemy(connection: Any, home: Micros | None) -> CallerTransaction:
    inner = connection.connection() if hasattr(connection, "flush") else connection
    return BlockingMySqlTransaction(lambda: _SqlAlchemyCursor(_checked(inner)), home)


def _async_sqlalchemy(connection: Any, home: Micros | None) -> CallerTransaction:
    async def open_cursor() -> Any:
        inner = await connection.connection() if hasattr(connection, "flush") else connection
        _checked(inner)
        return _AsyncSqlAlchemyCursor(inner)

    return AsyncMySqlTransaction(open_cursor, home)


def _checked(connection: Any) -> Any:
    if connection.dialect.name not in {"mysql", "mariadb"}:
        raise _elsewhere(connection.dialect.name)
    return connection


def _django(connection: Any, home: Micros | None) -> CallerTransaction:
    if connection.vendor != "mysql":
        raise _elsewhere(connection.vendor)
    return BlockingMySqlTransaction(connection.cursor, home)


def _elsewhere(name: str) -> InvalidInput:
    return InvalidInput(
        FIELD, f"it belongs to {name}, and the jobs are in MariaDB: use a connection to the same database"
    )


class _SqlAlchemyCursor:
    """SQLAlchemy's own call, so that it begins its transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._result: Any = None
        self.description: Any = None
        self.rowcount = 0

    def execute(self, statement: str) -> None:
        self._take(self._connection.exec_driver_sql(statement.replace("%", "%%")))

    def fetchall(self) -> list[Any]:
        return [tuple(row) for row in self._result.fetchall()]

    def close(self) -> None:
        """Nothing is open."""

    def _take(self, result: Any) -> None:
        self._result = result
        self.description = True if result.returns_rows else None
        self.rowcount = result.rowcount


class _AsyncSqlAlchemyCursor(_SqlAlchemyCursor):
    async def execute(self, statement: str) -> None:  # type: ignore[override]
        self._take(await self._connection.exec_driver_sql(statement.replace("%", "%%")))

    async def fetchall(self) -> list[Any]:  # type: ignore[override]
        return super().fetchall()

    async def close(self) -> None:  # type: ignore[override]
        super().close()


_ADAPTERS: tuple[tuple[str, str, Callable[[Any, Micros | None], CallerTransaction]], ...] = (
    ("asyncmy.", "Connection", _async_driver),
    ("asyncmy.", "Pool", _pool),
    ("aiomysql.", "Connection", _async_driver),
    ("aiomysql.", "Pool", _pool),
    ("pymysql.", "Connection", _driver),
    ("MySQLdb.", "Connection", _driver),
    ("sqlalchemy.ext.asyncio", "AsyncConnection", _async_sqlalchemy),
    ("sqlalchemy.ext.asyncio", "AsyncSession", _async_sqlalchemy),
    ("sqlalchemy.ext.asyncio", "async_scoped_session", _async_sqlalchemy),
    ("sqlalchemy.", "Connection", _sqlalchemy),
    ("sqlalchemy.", "Session", _sqlalchemy),
    ("sqlalchemy.", "scoped_session", _sqlalchemy),
    ("django.", "BaseDatabaseWrapper", _django),
    ("django.", "ConnectionProxy", _django),
)

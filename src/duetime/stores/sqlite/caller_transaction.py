"""Jobs stored through a caller's own connection to the same file, in the caller's own transaction.

Connections of other libraries are recognised by their attributes: only the standard library is imported here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from duetime.clock import wall_micros
from duetime.errors import InvalidInput, StoreUnavailable
from duetime.model.job import JobDraft
from duetime.store import CallerStore, RunOnOwner
from duetime.stores.sql import jobs
from duetime.stores.sql.session import run_now
from duetime.stores.sql.store import SqlStore
from duetime.stores.sqlite import errors
from duetime.stores.sqlite.session import SqliteTransaction
from duetime.stores.sqlite.task_connection import SqliteTaskConnection

FIELD = "connection"
KINDS = (
    "sqlite3.Connection, aiosqlite.Connection, django.db.connection, or a Connection or Session of "
    "SQLAlchemy over one of the first two"
)
AUTOCOMMIT = (
    'it is in autocommit mode and has no open transaction: execute "BEGIN" first, or use '
    "transaction.atomic() in Django"
)
STALE_SNAPSHOT = (
    "was written by others since this transaction read it, so SQLite does not let it write: roll back "
    "and repeat; "
    "transactions that read first should begin with BEGIN IMMEDIATE (Django: OPTIONS = "
    '{"transaction_mode": "IMMEDIATE"})'
)
ASYNCHRONOUS = "this connection is asynchronous: await the asynchronous call, or give a blocking connection"
LEGACY = (
    -1
)  # sqlite3.LEGACY_TRANSACTION_CONTROL, from Python 3.12 on: a transaction is begun by the first write

Work = Callable[[SqliteTransaction], Coroutine[Any, Any, Any]]


class BlockingCallerTransaction:
    """Over a connection of the standard library, which may be used on its own thread only."""

    blocking = True

    def __init__(self, path: Path, raw: Callable[[], sqlite3.Connection]) -> None:
        self._path = path
        self._raw = raw

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return self.add_jobs_now(drafts)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return _add(self._raw(), self._path, drafts)

    def verbs(self, run: RunOnOwner) -> CallerStore:
        return SqliteCallerStore(lambda work: run(lambda: _perform(self._raw(), self._path, work)))


class AsyncCallerTransaction:
    """Over a connection that has a thread of its own: aiosqlite's, or that of a task's own transaction."""

    blocking = False

    def __init__(self, path: Path, connection: Any) -> None:
        self._path = path
        self._connection = connection

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        added: list[UUID] = await self._run(lambda raw: _add(raw, self._path, drafts))
        return added

    def verbs(self, run: RunOnOwner) -> CallerStore:
        return SqliteCallerStore(lambda work: self._run(lambda raw: _perform(raw, self._path, work)))

    async def _run(self, call: Callable[[sqlite3.Connection], Any]) -> Any:
        """On the thread of the connection."""
        if isinstance(self._connection, SqliteTaskConnection):
            return await self._connection.run(call)
        connection = (
            await _of_sqlalchemy(self._connection)
            if hasattr(self._connection, "run_sync")
            else self._connection
        )
        raw = connection._conn
        return await connection._execute(lambda: call(raw))

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        raise InvalidInput(FIELD, ASYNCHRONOUS)


class SqliteCallerStore(SqlStore):
    """Each verb is one call on the thread of the connection; only its transaction is the caller's."""

    def __init__(self, perform: Callable[[Work], Awaitable[Any]]) -> None:
        self._perform = perform

    async def _write(self, role: str, work: Any, *arguments: Any, **named: Any) -> Any:
        return await self._perform(lambda transaction: work(transaction, *arguments, **named))

    _read = _write


def within(connection: Any, path: Path) -> BlockingCallerTransaction | AsyncCallerTransaction:
    if isinstance(connection, SqliteTaskConnection):
        return AsyncCallerTransaction(path, connection)
    if isinstance(connection, sqlite3.Connection):
        return BlockingCallerTransaction(path, lambda: connection)
    if getattr(connection, "vendor", None) == "sqlite" and hasattr(connection, "ensure_connection"):
        return BlockingCallerTransaction(path, lambda: _of_django(connection))
    package = type(connection).__module__.partition(".")[0]
    if package == "aiosqlite" or (package == "sqlalchemy" and hasattr(connection, "run_sync")):
        return AsyncCallerTransaction(path, connection)
    if package == "sqlalchemy" and hasattr(
        connection, "get_bind" if hasattr(connection, "flush") else "exec_driver_sql"
    ):
        return BlockingCallerTransaction(path, lambda: _blocking(_driver_of(connection)))
    raise InvalidInput(FIELD, f"{connection!r} is not a connection that this store can use: give {KINDS}")


def _add(raw: sqlite3.Connection, path: Path, drafts: Sequence[JobDraft]) -> list[UUID]:
    if not drafts:
        return []
    added: list[UUID] = _perform(raw, path, lambda transaction: jobs.add(transaction, drafts))
    return added


def _perform(raw: sqlite3.Connection, path: Path, work: Work) -> Any:
    try:
        _check_file(raw, path)
        _check_transaction(raw)
        transaction = SqliteTransaction(_PlainRows(raw), wall_micros())
        run_now(transaction.change("begin_to_write"))
        answer = run_now(work(transaction))
        transaction.count_change()  # noticed by all processes, this one included, when the caller commits
    except sqlite3.Error as problem:
        if errors.is_stale_snapshot(problem):
            raise StoreUnavailable(f"{path} {STALE_SNAPSHOT}") from problem
        raise errors.translate(problem, path) from problem
    return answer


def _check_file(raw: sqlite3.Connection, path: Path) -> None:
    named = {name: file for _, name, file in _PlainRows(raw).execute("PRAGMA database_list").fetchall()}
    file = named.get("main") or ":memory:"
    if file == ":memory:" or not Path(file).exists() or not Path(file).samefile(path):
        raise InvalidInput(
            FIELD, f"it is open on {file}, and the jobs are in {path}: connect to that file, or leave it out"
        )


def _check_transaction(raw: sqlite3.Connection) -> None:
    begins_implicitly = raw.isolation_level is not None and getattr(raw, "autocommit", LEGACY) is not True
    if not raw.in_transaction and not begins_implicitly:
        raise InvalidInput(FIELD, AUTOCOMMIT)


class _PlainRows:
    """The caller may have set a row factory; the statements of this store need tuples."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        cursor = self._connection.cursor(sqlite3.Cursor)
        cursor.row_factory = None
        return cursor.execute(statement, parameters)


def _of_django(wrapper: Any) -> sqlite3.Connection:
    wrapper.ensure_connection()
    raw: sqlite3.Connection = wrapper.connection
    return raw


def _driver_of(connection: Any) -> Any:
    """The driver's connection under a Connection or Session of SQLAlchemy, whose own transaction has
    begun."""
    inner = connection.connection() if hasattr(connection, "flush") else connection
    if inner.dialect.name != "sqlite":
        raise InvalidInput(
            FIELD,
            f"it is connected to {inner.dialect.name}, and the jobs are in SQLite: submit without a "
            "connection",
        )
    inner.exec_driver_sql(
        "SELECT 1"
    )  # SQLAlchemy begins with the first statement, and commits only what it began
    return inner.connection.driver_connection


async def _of_sqlalchemy(connection: Any) -> Any:
    driver = await connection.run_sync(_driver_of)
    if type(driver).__module__.partition(".")[0] != "aiosqlite":
        raise InvalidInput(FIELD, f"its driver gives {driver!r}: use sqlite+aiosqlite://")
    return driver


def _blocking(driver: Any) -> sqlite3.Connection:
    if not isinstance(driver, sqlite3.Connection):
        raise InvalidInput(FIELD, f"its driver gives {driver!r}: use sqlite+pysqlite://")
    return driver

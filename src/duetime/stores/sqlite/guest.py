"""Jobs stored through a caller's own connection to the same file, in the caller's own transaction.

The libraries they come from are known by what their objects look like: nothing but the standard library is imported here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from duetime.clock import wall_micros
from duetime.errors import InvalidInput, StoreUnavailable
from duetime.model.job import JobDraft
from duetime.stores.sqlite import faults, jobs
from duetime.stores.sqlite.session import Transaction
from duetime.stores.sqlite.task_connection import TaskConnection

FIELD = "connection"
KINDS = "sqlite3.Connection, aiosqlite.Connection, django.db.connection, or a Connection or Session of SQLAlchemy over one of the first two"
AUTOCOMMIT = 'it is in autocommit mode and has no open transaction: execute "BEGIN" first, or use transaction.atomic() in Django'
READ_THE_PAST = (
    "was written by others since this transaction read it, so SQLite lets it write no more: roll back and repeat; "
    'transactions that read first should begin with BEGIN IMMEDIATE (Django: OPTIONS = {"transaction_mode": "IMMEDIATE"})'
)
LEGACY = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL, from Python 3.12 on: a transaction is begun by the first write


class SqliteGuest:
    """Over a connection of the standard library, which may be used on its own thread only."""

    blocking = True

    def __init__(self, path: Path, raw: Callable[[], sqlite3.Connection], known_queues: Collection[str]) -> None:
        self._path = path
        self._raw = raw
        self._known_queues = known_queues

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return self.add_jobs_now(drafts)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return _add(self._raw(), self._path, drafts, self._known_queues)


class AsyncSqliteGuest:
    """Over an aiosqlite.Connection, which has a thread of its own."""

    blocking = False

    def __init__(self, path: Path, connection: Any, known_queues: Collection[str]) -> None:
        self._path = path
        self._connection = connection
        self._known_queues = known_queues

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        connection = await _of_sqlalchemy(self._connection) if hasattr(self._connection, "run_sync") else self._connection
        raw = connection._conn
        added: list[UUID] = await connection._execute(lambda: _add(raw, self._path, drafts, self._known_queues))
        return added

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        raise InvalidInput(FIELD, "this connection is asynchronous: await the asynchronous call, or give a blocking connection")


class TaskGuest(AsyncSqliteGuest):
    """Over the connection of a task's own transaction: what it submits is there when the task has succeeded, and never else."""

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        added: list[UUID] = await self._connection.run(lambda raw: _add(raw, self._path, drafts, self._known_queues))
        return added


def guest_of(connection: Any, path: Path, known_queues: Collection[str]) -> SqliteGuest | AsyncSqliteGuest:
    if isinstance(connection, TaskConnection):
        return TaskGuest(path, connection, known_queues)
    if isinstance(connection, sqlite3.Connection):
        return SqliteGuest(path, lambda: connection, known_queues)
    if getattr(connection, "vendor", None) == "sqlite" and hasattr(connection, "ensure_connection"):
        return SqliteGuest(path, lambda: _of_django(connection), known_queues)
    package = type(connection).__module__.partition(".")[0]
    if package == "aiosqlite" or (package == "sqlalchemy" and hasattr(connection, "run_sync")):
        return AsyncSqliteGuest(path, connection, known_queues)
    if package == "sqlalchemy" and hasattr(connection, "get_bind" if hasattr(connection, "flush") else "exec_driver_sql"):
        return SqliteGuest(path, lambda: _blocking(_driver_of(connection)), known_queues)
    raise InvalidInput(FIELD, f"{connection!r} is no connection this store can use: give {KINDS}")


def _add(raw: sqlite3.Connection, path: Path, drafts: Sequence[JobDraft], known_queues: Collection[str]) -> list[UUID]:
    if not drafts:
        return []
    try:
        _check_file(raw, path)
        _check_transaction(raw)
        transaction = Transaction(_PlainRows(raw), wall_micros())
        transaction.change("begin_to_write")
        ids = jobs.add(transaction, drafts, known_queues)
        if transaction.pulse:
            # Seen by everybody, this process included, when the caller commits.
            transaction.change("raise_pulse")
    except sqlite3.Error as problem:
        if faults.has_read_the_past(problem):
            raise StoreUnavailable(f"{path} {READ_THE_PAST}") from problem
        raise faults.translate(problem, path) from problem
    return ids


def _check_file(raw: sqlite3.Connection, path: Path) -> None:
    named = {name: file for _, name, file in _PlainRows(raw).execute("PRAGMA database_list").fetchall()}
    file = named.get("main") or ":memory:"
    if file == ":memory:" or not Path(file).exists() or not Path(file).samefile(path):
        raise InvalidInput(FIELD, f"it is open on {file}, and the jobs live in {path}: connect to that file, or leave it out")


def _check_transaction(raw: sqlite3.Connection) -> None:
    begins_by_itself = raw.isolation_level is not None and getattr(raw, "autocommit", LEGACY) is not True
    if not raw.in_transaction and not begins_by_itself:
        raise InvalidInput(FIELD, AUTOCOMMIT)


class _PlainRows:
    """The caller may have set a row factory; what is asked here wants tuples."""

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
    """The driver's connection under a Connection or Session of SQLAlchemy, whose own transaction has begun."""
    inner = connection.connection() if hasattr(connection, "flush") else connection
    if inner.dialect.name != "sqlite":
        raise InvalidInput(FIELD, f"it is connected to {inner.dialect.name}, and the jobs live in SQLite: submit without a connection")
    inner.exec_driver_sql("SELECT 1")  # SQLAlchemy begins with the first statement, and commits only what it began
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

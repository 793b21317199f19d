"""A caller's own connection, of any supported driver: jobs are stored in its open transaction and visible
when the caller commits.

Drivers are recognised by the names of their modules: none is imported here that the caller has not imported.
All of them can send and read text, so the drafts are sent as one JSON text to a function of the server."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from duetime.clock import wall_micros
from duetime.errors import InvalidInput
from duetime.model import codec
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.model.permits import waiting_when_stored
from duetime.store import CallerStore, CallerTransaction, RunOnOwner
from duetime.stores.postgres.caller_store import PostgresCallerStore
from duetime.stores.postgres.queues import PostgresQueues

FIELD = "connection"
ADD = "SELECT CAST(id AS text), CAST(answer AS text) FROM duetime.add_jobs_from_json({}, {})"
IN_DOLLARS, IN_PERCENTS, IN_NAMES = (
    ADD.format("$1", "$2"),
    ADD.format("%s", "%s"),
    ADD.format(":drafts", ":home"),
)
AS_IT_IS = {"no_parameters": True}  # SQLAlchemy leaves percent signs alone
IDLE = 0  # psycopg's transaction status
NO_SCHEMA = {"3F000", "42P01", "42883"}  # no such schema, table, function
OTHER_DATABASE = "DT001"
Rows = Iterable[Sequence[str]]


class Driver(NamedTuple):
    """How to send statements through one kind of connection."""

    blocking: bool
    call: Callable[[str, str], Any]  # stores jobs: drafts and home in, rows out
    send: Callable[[str], Any]  # any statement; the rows out


class PostgresTransaction:
    def __init__(self, driver: Driver, home: str, queues: PostgresQueues) -> None:
        self._driver = driver
        self._call = driver.call
        self._home = home
        self._queues = queues

    def verbs(self, run: RunOnOwner) -> CallerStore:
        async def send(statement: str) -> Any:
            call = partial(self._driver.send, statement)
            return await (run(call) if self._driver.blocking else call())

        async def check() -> None:
            call = partial(self._call, "[]", self._home)
            await (run(call) if self._driver.blocking else call())

        async def surrounded(verb: Awaitable[Any]) -> Any:
            with _explained():
                await check()
                return await verb

        return PostgresCallerStore(send, surrounded, self._queues)


class BlockingPostgresTransaction(PostgresTransaction):
    """A connection without async."""

    blocking = True

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return self.add_jobs_now(drafts)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        with _explained():
            rows = self._call(_in_json(drafts), self._home) if drafts else []
        return _ids(drafts, rows)


class AsyncPostgresTransaction(PostgresTransaction):
    blocking = False

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        # On a connection of the store: a new name in the caller's transaction would block every user of it
        # until that ends.
        await self._queues.record(drafts)
        with _explained():
            rows = await self._call(_in_json(drafts), self._home) if drafts else []
        return _ids(drafts, rows)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        raise InvalidInput(
            FIELD, "this connection is asynchronous: await the call from the event loop that uses it"
        )


def caller_transaction(connection: Any, home: Micros | None, queues: PostgresQueues) -> CallerTransaction:
    """InvalidInput for a connection that cannot be used."""
    at = "" if home is None else str(home)
    for module, name, adapter in _ADAPTERS:
        if any(
            cls.__module__.startswith(module) and cls.__name__ == name for cls in type(connection).__mro__
        ):
            driver = adapter(connection)
            if driver.blocking:
                return BlockingPostgresTransaction(driver, at, queues)
            return AsyncPostgresTransaction(driver, at, queues)
    name = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise InvalidInput(
        FIELD,
        f"a {name} cannot be used: give a connection of asyncpg or psycopg 3, a connection or session "
        "of SQLAlchemy 2, or Django's",
    )


# -- adapters
def _asyncpg(connection: Any) -> Driver:
    if not connection.is_in_transaction():
        raise _no_transaction("begin one with `async with connection.transaction():`")

    async def send(statement: str) -> Any:
        # Prepared by itself: the driver would put every text in place of a statement that the caller repeats
        return await (await connection.prepare(statement)).fetch()

    return Driver(False, lambda drafts, home: connection.fetch(IN_DOLLARS, drafts, home), send)


def _pool(connection: Any) -> Driver:
    raise InvalidInput(FIELD, "this is a pool: acquire a connection from it and begin a transaction there")


def _psycopg(connection: Any) -> Driver:
    _check_psycopg(connection)

    def call(drafts: str, home: str) -> Rows:
        with connection.cursor(row_factory=_tuples()) as cursor:
            rows: Rows = cursor.execute(IN_PERCENTS, (drafts, home)).fetchall()
            return rows

    def send(statement: str) -> Any:
        with connection.cursor(row_factory=_tuples()) as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    return Driver(True, call, send)


def _async_psycopg(connection: Any) -> Driver:
    _check_psycopg(connection)

    async def call(drafts: str, home: str) -> Rows:
        async with connection.cursor(row_factory=_tuples()) as cursor:
            await cursor.execute(IN_PERCENTS, (drafts, home))
            rows: Rows = await cursor.fetchall()
            return rows

    async def send(statement: str) -> Any:
        async with connection.cursor(row_factory=_tuples()) as cursor:
            await cursor.execute(statement)
            return await cursor.fetchall() if cursor.description else []

    return Driver(False, call, send)


def _check_psycopg(connection: Any) -> None:
    if connection.autocommit and connection.info.transaction_status == IDLE:
        raise _no_transaction("it is in autocommit: begin one with `with connection.transaction():`")


def _tuples() -> Any:
    return sys.modules["psycopg.rows"].tuple_row


def _sqlalchemy(connection: Any) -> Driver:
    _check_sqlalchemy(connection)

    def send(statement: str) -> Any:
        return _result(connection.exec_driver_sql(statement, None, AS_IT_IS))

    return Driver(
        True,
        lambda drafts, home: connection.execute(_text(), {"drafts": drafts, "home": home}).fetchall(),
        send,
    )


def _result(result: Any) -> Any:
    return result.fetchall() if result.returns_rows else []


def _sqlalchemy_session(session: Any) -> Driver:
    return _sqlalchemy(session.connection())


def _async_sqlalchemy(connection: Any) -> Driver:
    _check_dialect(connection.dialect)

    async def call(drafts: str, home: str) -> Rows:
        await connection.run_sync(_check_sqlalchemy)
        rows: Rows = (await connection.execute(_text(), {"drafts": drafts, "home": home})).fetchall()
        return rows

    async def send(statement: str) -> Any:
        return _result(await connection.exec_driver_sql(statement, None, AS_IT_IS))

    return Driver(False, call, send)


def _async_scoped_session(scoped: Any) -> Driver:
    return _async_sqlalchemy_session(scoped())  # of this task: the verbs run in others


def _async_sqlalchemy_session(session: Any) -> Driver:
    async def call(drafts: str, home: str) -> Rows:
        rows: Rows = await _async_sqlalchemy(await session.connection()).call(drafts, home)
        return rows

    async def send(statement: str) -> Any:
        return await _async_sqlalchemy(await session.connection()).send(statement)

    return Driver(False, call, send)


def _check_sqlalchemy(connection: Any) -> None:
    _check_dialect(connection.dialect)
    if getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise _no_transaction(
            'it is in autocommit: use an engine or connection whose isolation level is not "AUTOCOMMIT"'
        )


def _check_dialect(dialect: Any) -> None:
    if dialect.name != "postgresql":
        raise InvalidInput(
            FIELD,
            f"it belongs to {dialect.name}, and the jobs are in PostgreSQL: use a connection to the "
            "same database",
        )


def _text() -> Any:
    return sys.modules["sqlalchemy"].text(IN_NAMES)


def _django(connection: Any) -> Driver:
    if connection.vendor != "postgresql":
        raise InvalidInput(
            FIELD,
            f"it belongs to {connection.vendor}, and the jobs are in PostgreSQL: use a connection to "
            "the same database",
        )
    if not connection.in_atomic_block and connection.get_autocommit():
        raise _no_transaction("begin one with `with transaction.atomic():`")

    def call(drafts: str, home: str) -> Rows:
        with connection.cursor() as cursor:
            cursor.execute(IN_PERCENTS, [drafts, home])
            rows: Rows = cursor.fetchall()
            return rows

    def send(statement: str) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    return Driver(True, call, send)


_ADAPTERS: tuple[tuple[str, str, Callable[[Any], Driver]], ...] = (
    ("asyncpg.", "Connection", _asyncpg),
    ("asyncpg.", "PoolConnectionProxy", _asyncpg),
    ("asyncpg.", "Pool", _pool),
    ("psycopg", "AsyncConnection", _async_psycopg),
    ("psycopg", "Connection", _psycopg),
    ("sqlalchemy.ext.asyncio", "AsyncConnection", _async_sqlalchemy),
    ("sqlalchemy.ext.asyncio", "AsyncSession", _async_sqlalchemy_session),
    ("sqlalchemy.ext.asyncio", "async_scoped_session", _async_scoped_session),
    ("sqlalchemy.", "Connection", _sqlalchemy),
    ("sqlalchemy.", "Session", _sqlalchemy_session),
    ("sqlalchemy.", "scoped_session", _sqlalchemy_session),
    ("django.", "BaseDatabaseWrapper", _django),
    ("django.", "ConnectionProxy", _django),
)


# -- parameters and results
def _in_json(drafts: Sequence[JobDraft]) -> str:
    waiting = waiting_when_stored(drafts, wall_micros())
    rows = [{**draft._asdict(), "waits_for": waiting.get(draft.id)} for draft in drafts]
    return codec.encode([{name: _plain(value) for name, value in row.items()} for row in rows]).decode()


def _plain(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _ids(drafts: Sequence[JobDraft], rows: Rows) -> list[UUID]:
    holders = {UUID(job_id): UUID(holder) for job_id, holder in rows}
    return [holders[draft.id] for draft in drafts]


def _no_transaction(remedy: str) -> InvalidInput:
    return InvalidInput(FIELD, f"no transaction is open on it, so nothing would commit the job: {remedy}")


@contextmanager
def _explained() -> Any:
    """Explains the driver's errors about the function of the store; all others are the caller's."""
    try:
        yield
    except Exception as problem:
        state = _state(problem)
        if state == OTHER_DATABASE:
            raise InvalidInput(FIELD, "it belongs to another database than the jobs") from problem
        if state in NO_SCHEMA:
            raise InvalidInput(
                FIELD, "it belongs to a database without Duetime's tables: use the database of the jobs"
            ) from problem
        raise


def _state(problem: BaseException | None) -> str | None:
    """SQLAlchemy and Django wrap the driver's error."""
    while problem is not None:
        for name in ("sqlstate", "pgcode"):
            if isinstance(state := getattr(problem, name, None), str):
                return state
        problem = getattr(problem, "orig", None) or problem.__cause__
    return None

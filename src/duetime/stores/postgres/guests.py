"""A caller's own connection, whatever driver made it: jobs are stored in its open transaction and are there when the caller commits.

Drivers are told apart by the names of their modules: none is imported here that the caller has not imported. All they have in common is
that they can send a text and read texts, so the drafts travel as one JSON text to a function of the server.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from duetime.errors import InvalidInput
from duetime.model import codec
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.store import Guest
from duetime.stores.postgres.queues import Queues

FIELD = "connection"
ADD = "SELECT CAST(id AS text), CAST(answer AS text) FROM duetime.add_guest_jobs({}, {})"
IN_DOLLARS, IN_PERCENTS, IN_NAMES = ADD.format("$1", "$2"), ADD.format("%s", "%s"), ADD.format(":drafts", ":home")
IDLE = 0  # psycopg's transaction status: nothing begun
STRANGERS = {"3F000", "42P01", "42883"}  # no such schema, table, function
ELSEWHERE = "DT001"
Ask = Callable[[str, str], Any]  # drafts and home in, rows out
Rows = Iterable[Sequence[str]]


class BlockingGuest:
    """A connection without async."""

    blocking = True

    def __init__(self, ask: Callable[[str, str], Rows], home: str) -> None:
        self._ask = ask
        self._home = home

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return self.add_jobs_now(drafts)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        with _explained():
            rows = self._ask(_in_json(drafts), self._home) if drafts else []
        return _answers(drafts, rows)


class AsyncGuest:
    blocking = False

    def __init__(self, ask: Callable[[str, str], Awaitable[Rows]], home: str, queues: Queues) -> None:
        self._ask = ask
        self._home = home
        self._queues = queues

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        # On a line of ours: a new name in the caller's transaction would hold up everybody who uses it, until that ends.
        await self._queues.record({draft.queue for draft in drafts})
        with _explained():
            rows = await self._ask(_in_json(drafts), self._home) if drafts else []
        return _answers(drafts, rows)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        raise InvalidInput(FIELD, "this one is asynchronous: await the call from the event loop that uses it")


def welcome(connection: Any, home: Micros | None, queues: Queues) -> Guest:
    """The way to use this connection; InvalidInput for one we cannot use."""
    at = "" if home is None else str(home)
    for module, name, enter in _DOORS:
        if any(cls.__module__.startswith(module) and cls.__name__ == name for cls in type(connection).__mro__):
            blocking, ask = enter(connection)
            return BlockingGuest(ask, at) if blocking else AsyncGuest(ask, at, queues)
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise InvalidInput(
        FIELD, f"a {kind} cannot be used: give a connection of asyncpg or psycopg 3, a connection or session of SQLAlchemy 2, or Django's"
    )


# -- doors: whether asking blocks, and how to ask -----------------------------------------------------------------------------
def _asyncpg(connection: Any) -> tuple[bool, Ask]:
    if not connection.is_in_transaction():
        raise _no_transaction("begin one with `async with connection.transaction():`")
    return False, lambda drafts, home: connection.fetch(IN_DOLLARS, drafts, home)


def _pool(connection: Any) -> tuple[bool, Ask]:
    raise InvalidInput(FIELD, "this is a pool: acquire a connection from it and begin a transaction there")


def _psycopg(connection: Any) -> tuple[bool, Ask]:
    _check_psycopg(connection)

    def ask(drafts: str, home: str) -> Rows:
        with connection.cursor(row_factory=_tuples()) as cursor:
            rows: Rows = cursor.execute(IN_PERCENTS, (drafts, home)).fetchall()
            return rows

    return True, ask


def _async_psycopg(connection: Any) -> tuple[bool, Ask]:
    _check_psycopg(connection)

    async def ask(drafts: str, home: str) -> Rows:
        async with connection.cursor(row_factory=_tuples()) as cursor:
            await cursor.execute(IN_PERCENTS, (drafts, home))
            rows: Rows = await cursor.fetchall()
            return rows

    return False, ask


def _check_psycopg(connection: Any) -> None:
    if connection.autocommit and connection.info.transaction_status == IDLE:
        raise _no_transaction("it is in autocommit: begin one with `with connection.transaction():`")


def _tuples() -> Any:
    return sys.modules["psycopg.rows"].tuple_row


def _sqlalchemy(connection: Any) -> tuple[bool, Ask]:
    _check_sqlalchemy(connection)
    return True, lambda drafts, home: connection.execute(_text(), {"drafts": drafts, "home": home}).fetchall()


def _sqlalchemy_session(session: Any) -> tuple[bool, Ask]:
    return _sqlalchemy(session.connection())


def _async_sqlalchemy(connection: Any) -> tuple[bool, Ask]:
    _check_dialect(connection.dialect)

    async def ask(drafts: str, home: str) -> Rows:
        await connection.run_sync(_check_sqlalchemy)
        rows: Rows = (await connection.execute(_text(), {"drafts": drafts, "home": home})).fetchall()
        return rows

    return False, ask


def _async_sqlalchemy_session(session: Any) -> tuple[bool, Ask]:
    async def ask(drafts: str, home: str) -> Rows:
        _, inner = _async_sqlalchemy(await session.connection())
        rows: Rows = await inner(drafts, home)
        return rows

    return False, ask


def _check_sqlalchemy(connection: Any) -> None:
    _check_dialect(connection.dialect)
    if getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise _no_transaction('it is in autocommit: use an engine or connection whose isolation level is not "AUTOCOMMIT"')


def _check_dialect(dialect: Any) -> None:
    if dialect.name != "postgresql":
        raise InvalidInput(FIELD, f"it leads to {dialect.name}, and the jobs are in PostgreSQL: use a connection to the same database")


def _text() -> Any:
    return sys.modules["sqlalchemy"].text(IN_NAMES)


def _django(connection: Any) -> tuple[bool, Ask]:
    if connection.vendor != "postgresql":
        raise InvalidInput(FIELD, f"it leads to {connection.vendor}, and the jobs are in PostgreSQL: use a connection to the same database")
    if not connection.in_atomic_block and connection.get_autocommit():
        raise _no_transaction("begin one with `with transaction.atomic():`")

    def ask(drafts: str, home: str) -> Rows:
        with connection.cursor() as cursor:
            cursor.execute(IN_PERCENTS, [drafts, home])
            rows: Rows = cursor.fetchall()
            return rows

    return True, ask


_DOORS: tuple[tuple[str, str, Callable[[Any], tuple[bool, Ask]]], ...] = (
    ("asyncpg.", "Connection", _asyncpg),
    ("asyncpg.", "PoolConnectionProxy", _asyncpg),
    ("asyncpg.", "Pool", _pool),
    ("psycopg", "AsyncConnection", _async_psycopg),
    ("psycopg", "Connection", _psycopg),
    ("sqlalchemy.ext.asyncio", "AsyncConnection", _async_sqlalchemy),
    ("sqlalchemy.ext.asyncio", "AsyncSession", _async_sqlalchemy_session),
    ("sqlalchemy.ext.asyncio", "async_scoped_session", _async_sqlalchemy_session),
    ("sqlalchemy.", "Connection", _sqlalchemy),
    ("sqlalchemy.", "Session", _sqlalchemy_session),
    ("sqlalchemy.", "scoped_session", _sqlalchemy_session),
    ("django.", "BaseDatabaseWrapper", _django),
    ("django.", "ConnectionProxy", _django),
)


# -- what goes over and what comes back ---------------------------------------------------------------------------------------
def _in_json(drafts: Sequence[JobDraft]) -> str:
    return codec.encode([{name: _plain(value) for name, value in draft._asdict().items()} for draft in drafts]).decode()


def _plain(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _answers(drafts: Sequence[JobDraft], rows: Rows) -> list[UUID]:
    answers = {UUID(job_id): UUID(answer) for job_id, answer in rows}
    return [answers[draft.id] for draft in drafts]


def _no_transaction(remedy: str) -> InvalidInput:
    return InvalidInput(FIELD, f"no transaction is open on it, so there is nothing to commit the job with: {remedy}")


@contextmanager
def _explained() -> Any:
    """What the driver's errors about our own function mean; all others are the caller's."""
    try:
        yield
    except Exception as problem:
        state = _state(problem)
        if state == ELSEWHERE:
            raise InvalidInput(FIELD, "it leads to another database than the one the jobs are in") from problem
        if state in STRANGERS:
            raise InvalidInput(FIELD, "it leads to a database without Duetime's tables: use the one the jobs are in") from problem
        raise


def _state(problem: BaseException | None) -> str | None:
    """SQLAlchemy and Django wrap the driver's error."""
    while problem is not None:
        for name in ("sqlstate", "pgcode"):
            if isinstance(state := getattr(problem, name, None), str):
                return state
        problem = getattr(problem, "orig", None) or problem.__cause__
    return None

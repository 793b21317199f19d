"""Jobs stored in a caller's own transaction, through every supported driver: visible if and when the caller
commits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Any

import asyncpg
import django
import psycopg
import pytest
from django.conf import settings
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from duetime.errors import InvalidInput
from duetime.model.hint import JobHint
from duetime.model.job import JobDraft, JobFilter, State
from duetime.store import Store
from duetime.stores.postgres import PostgresStore
from duetime.testing.conformance.drafts import (
    HOUR,
    PRIORITY,
    QUEUE,
    TENANT,
    add,
    claim,
    job,
    jobs,
    joined,
    new_id,
    request,
    stored,
)
from duetime.testing.conformance.hints import Ear, calls_for
from tests.servers.postgres import PostgresServer

WRITE = "CREATE TABLE IF NOT EXISTS caller_writes (id bigint)"
BLOCKED = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE application_name = 'duetime submit' AND wait_event_type = 'Lock'"
)


class Undone(Exception):
    """Raised by a caller who changes their mind."""


# -- async drivers
# ----------------------------------------------------------------------------------------------------
@asynccontextmanager
async def asyncpg_connection(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def asyncpg_pool(url: str) -> AsyncIterator[Any]:
    async with (
        asyncpg.create_pool(url, min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        yield connection


@asynccontextmanager
async def asyncpg_with_codecs(url: str) -> AsyncIterator[Any]:
    """With codecs that a user may have set."""
    connection = await asyncpg.connect(url)
    try:
        for kind in ("json", "jsonb", "uuid", "timestamptz", "bytea"):
            await connection.set_type_codec(kind, schema="pg_catalog", encoder=repr, decoder=repr)
        async with connection.transaction(), connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def psycopg_async(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        yield connection


@asynccontextmanager
async def psycopg_async_autocommit(url: str) -> AsyncIterator[Any]:
    async with (
        await psycopg.AsyncConnection.connect(url, autocommit=True) as connection,
        connection.transaction(),
    ):
        yield connection


@asynccontextmanager
async def alchemy_async(url: str, driver: str = "asyncpg") -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("postgresql:", f"postgresql+{driver}:"))
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def alchemy_async_session(url: str, driver: str = "asyncpg") -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("postgresql:", f"postgresql+{driver}:"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


@asynccontextmanager
async def alchemy_async_scoped(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    scoped = async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)
    try:
        async with scoped.begin():
            yield scoped
    finally:
        await scoped.remove()
        await engine.dispose()


ASYNC: dict[str, Callable[[str], AbstractAsyncContextManager[Any]]] = {
    "asyncpg": asyncpg_connection,
    "asyncpg pool": asyncpg_pool,
    "asyncpg codecs": asyncpg_with_codecs,
    "psycopg": psycopg_async,
    "psycopg autocommit": psycopg_async_autocommit,
    "sqlalchemy asyncpg": alchemy_async,
    "sqlalchemy psycopg": lambda url: alchemy_async(url, "psycopg"),
    "sqlalchemy session": alchemy_async_session,
    "sqlalchemy session psycopg": lambda url: alchemy_async_session(url, "psycopg"),
    "sqlalchemy scoped": alchemy_async_scoped,
}


# -- drivers that block
# -----------------------------------------------------------------------------------------------
@contextmanager
def psycopg_blocking(url: str) -> Iterator[Any]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        yield connection


@contextmanager
def psycopg_client_cursors(url: str) -> Iterator[Any]:
    with psycopg.connect(url, cursor_factory=psycopg.ClientCursor) as connection, connection.transaction():
        yield connection


@contextmanager
def alchemy(url: str) -> Iterator[Any]:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def alchemy_session(url: str) -> Iterator[Any]:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@contextmanager
def alchemy_scoped(url: str) -> Iterator[Any]:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    scoped = scoped_session(sessionmaker(engine))
    try:
        with scoped.begin():
            yield scoped
    finally:
        scoped.remove()
        engine.dispose()


@contextmanager
def django_database(url: str) -> Iterator[Any]:
    """Django's own connection, pointed at this database."""
    if not settings.configured:
        settings.configure(
            DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "x"}}, USE_TZ=True
        )
        django.setup()
    from django.db import connection  # only possible once it is configured

    place = psycopg.conninfo.conninfo_to_dict(url)
    connection.settings_dict.update(
        NAME=place["dbname"], USER=place["user"], HOST=place["host"], PORT=str(place["port"]), OPTIONS={}
    )
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def django_atomic(url: str) -> Iterator[Any]:
    with django_database(url) as connection:
        from django.db import transaction  # only possible once it is configured

        with transaction.atomic():
            yield connection


@contextmanager
def django_wrapper(url: str) -> Iterator[Any]:
    with django_atomic(url):
        from django.db import connections  # only possible once it is configured

        yield connections["default"]


BLOCKING: dict[str, Callable[[str], AbstractContextManager[Any]]] = {
    "psycopg": psycopg_blocking,
    "psycopg client cursors": psycopg_client_cursors,
    "sqlalchemy": alchemy,
    "sqlalchemy session": alchemy_session,
    "sqlalchemy scoped": alchemy_scoped,
    "django": django_atomic,
    "django wrapper": django_wrapper,
}


def full_draft(due_at: int, **changes: Any) -> JobDraft:
    details = {
        "policies": b"\x00\xff",
        "target_spec": b"{2}",
        "payload": b'{"it": "\xf0\x9f\xa6\x84"}',
        "labels": b'{"a": "b"}',
    }
    return job(
        due_at, owner="it's %s :name $1", limit_key="a key", retry_of=new_id(0), **{**details, **changes}
    )


def outside(store: Store, connection: Any, drafts: list[JobDraft]) -> list[Any]:
    """What a thread that owns the connection does: Django refuses to work where an event loop runs."""
    return store.within(connection).add_jobs_now(drafts)


def in_thread(
    use: Callable[[str], AbstractContextManager[Any]],
    url: str,
    store: Store,
    drafts: list[JobDraft],
    undo: bool,
) -> list[Any]:
    try:
        with use(url) as connection:
            ids = outside(store, connection, drafts)
            if undo:
                raise Undone
    except Undone:
        return []
    return ids


class TestAsync:
    @pytest.mark.parametrize("use", ASYNC.values(), ids=ASYNC)
    async def test_committed_jobs_are_visible(
        self, store: PostgresStore, postgres_database: str, use: Callable[[str], Any]
    ) -> None:
        """Nothing is visible before the commit, everything after it."""
        now = await store.time()
        drafts = [full_draft(now + HOUR + 7), full_draft(now + HOUR, queue="new")]
        async with use(postgres_database) as connection:
            caller = store.within(connection)
            assert not caller.blocking
            assert await caller.add_jobs(drafts) == [draft.id for draft in drafts]
            assert await store.list_jobs(JobFilter(TENANT), 10) == []
        for draft in drafts:
            found = await stored(store, draft.id)
            assert tuple(getattr(found, name) for name in draft._fields) == draft
            assert (found.state, found.attempt) == (State.PENDING, 0)
        assert [queue.name for queue in await store.queues()] == ["new", QUEUE]

    @pytest.mark.parametrize("use", ASYNC.values(), ids=ASYNC)
    async def test_rolled_back_jobs_are_not_stored(
        self, store: PostgresStore, postgres_database: str, use: Callable[[str], Any]
    ) -> None:
        now = await store.time()
        with suppress(Undone):
            async with use(postgres_database) as connection:
                assert len(await store.within(connection).add_jobs(jobs(3, now))) == 3
                raise Undone
        assert await store.list_jobs(JobFilter(TENANT), 10) == []

    @pytest.mark.parametrize("use", ASYNC.values(), ids=ASYNC)
    async def test_blocking_call_is_refused(
        self, store: PostgresStore, postgres_database: str, use: Callable[[str], Any]
    ) -> None:
        async with use(postgres_database) as connection:
            with pytest.raises(InvalidInput, match="await"):
                store.within(connection).add_jobs_now([])
            assert await store.within(connection).add_jobs([]) == []


class TestBlocking:
    @pytest.mark.parametrize("use", BLOCKING.values(), ids=BLOCKING)
    async def test_committed_jobs_are_visible(
        self, store: PostgresStore, postgres_database: str, use: Callable[[str], Any]
    ) -> None:
        now = await store.time()
        drafts = [full_draft(now + HOUR + 7), full_draft(now + HOUR, queue="new")]
        ids = await asyncio.to_thread(in_thread, use, postgres_database, store, drafts, False)
        assert ids == [draft.id for draft in drafts]
        for draft in drafts:
            found = await stored(store, draft.id)
            assert tuple(getattr(found, name) for name in draft._fields) == draft
        assert [queue.name for queue in await store.queues()] == ["new", QUEUE]

    @pytest.mark.parametrize("use", BLOCKING.values(), ids=BLOCKING)
    async def test_rolled_back_jobs_are_not_stored(
        self, store: PostgresStore, postgres_database: str, use: Callable[[str], Any]
    ) -> None:
        drafts = jobs(3, await store.time())
        await asyncio.to_thread(in_thread, use, postgres_database, store, drafts, True)
        assert await store.list_jobs(JobFilter(TENANT), 10) == []

    async def test_blocking_connection_can_be_awaited(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        draft = job(await store.time())
        with psycopg_blocking(postgres_database) as connection:
            caller = store.within(connection)
            assert caller.blocking
            assert await caller.add_jobs([draft]) == [draft.id]
        assert (await stored(store, draft.id)).state is State.PENDING


class TestTogether:
    async def test_jobs_are_stored_with_the_callers_own_writes(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """The order and the job that handles it: both or none."""
        now = await store.time()
        async with asyncpg_connection(postgres_database) as connection:
            await connection.execute(WRITE)
        for number in range(10):
            with suppress(Undone):
                async with asyncpg_connection(postgres_database) as connection:
                    await connection.execute("INSERT INTO caller_writes VALUES ($1)", number)
                    await store.within(connection).add_jobs([job(now, payload=str(number).encode())])
                    if number % 3 == 0:
                        raise Undone
        with psycopg.connect(postgres_database) as outside:
            written = {str(number).encode() for (number,) in outside.execute("SELECT id FROM caller_writes")}
            outside.execute("DROP TABLE caller_writes")
        assert {found.payload for found in await store.list_jobs(JobFilter(TENANT), 100)} == written
        assert len(written) == 6

    async def test_hint_is_sent_at_the_commit(self, store: PostgresStore, postgres_database: str) -> None:
        now, ear = await store.time(), Ear()
        store.subscribe(ear)

        async def act() -> None:
            async with asyncpg_connection(postgres_database) as connection:
                await store.within(connection).add_jobs([job(now, queue="it's a queue, 🦄 : 9 * 3")])

        assert await ear.hears(
            act, lambda hint: isinstance(hint, JobHint) and hint.queue == "it's a queue, 🦄 : 9 * 3"
        ), ear.heard
        assert await ear.hears(act, calls_for("it's a queue, 🦄 : 9 * 3", PRIORITY, now))

    async def test_job_is_claimed_only_after_the_commit(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        node, now = await joined(store), await store.time()
        draft = job(now)
        async with asyncpg_connection(postgres_database) as connection:
            await store.within(connection).add_jobs([draft])
            assert await claim(store, request(node)) == []
        assert [row.id for row in await claim(store, request(node))] == [draft.id]


class TestKeys:
    async def test_holder_of_a_unique_key_is_returned(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        now = await store.time()
        holder = await add(store, job(now, unique_key="key"))
        fresh, same = job(now, unique_key="another"), job(now, unique_key="key")
        async with asyncpg_connection(postgres_database) as connection:
            caller = store.within(connection)
            assert await caller.add_jobs([same, fresh, job(now, unique_key="another")]) == [
                holder.id,
                fresh.id,
                fresh.id,
            ]
            assert await caller.add_jobs([fresh]) == [fresh.id]
        assert {found.id for found in await store.list_jobs(JobFilter(TENANT), 10)} == {holder.id, fresh.id}

    async def test_second_draft_of_a_key_waits_for_the_first(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """When the first is rolled back, the second gets the key."""
        now = await store.time()
        first, second = job(now, unique_key="key"), job(now, unique_key="key")
        with suppress(Undone):
            async with asyncpg_connection(postgres_database) as connection:
                await store.within(connection).add_jobs([first])
                waiting = asyncio.create_task(store.add_jobs([second]))
                while not await connection.fetchval(BLOCKED):
                    await asyncio.sleep(0)
                raise Undone
        assert await waiting == [second.id]


class TestRefusals:
    async def refused(self, store: Store, connection: Any, words: str) -> None:
        with pytest.raises(InvalidInput, match=words) as caught:
            await store.within(connection).add_jobs([job(0)])
        assert caught.value.field == "connection"

    async def test_connection_without_a_transaction_is_refused(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        plain = await asyncpg.connect(postgres_database)
        await self.refused(store, plain, "no transaction.*connection.transaction")
        await plain.close()
        async with await psycopg.AsyncConnection.connect(postgres_database, autocommit=True) as connection:
            await self.refused(store, connection, "no transaction.*autocommit")
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            await self.refused(store, connection, "no transaction.*autocommit")

    async def test_sqlalchemy_connection_without_a_transaction_is_refused(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        for driver in ("asyncpg", "psycopg"):
            url = postgres_database.replace("postgresql:", f"postgresql+{driver}:")
            for engine in (create_async_engine(url, isolation_level="AUTOCOMMIT"), create_async_engine(url)):
                async with engine.connect() as connection:
                    await connection.execution_options(isolation_level="AUTOCOMMIT")
                    await self.refused(store, connection, "no transaction.*AUTOCOMMIT")
                await engine.dispose()
        blocking = create_engine(
            postgres_database.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"
        )
        with blocking.connect() as connection:
            connection.execute(text("SELECT 1"))
            await self.refused(store, connection, "no transaction.*AUTOCOMMIT")
        blocking.dispose()

    async def test_django_connection_without_a_transaction_is_refused(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        def ask() -> None:
            with (
                django_database(postgres_database) as connection,
                pytest.raises(InvalidInput, match=r"transaction\.atomic"),
            ):
                store.within(connection)

        await asyncio.to_thread(ask)

    async def test_pool_is_refused(self, store: PostgresStore, postgres_database: str) -> None:
        async with asyncpg.create_pool(postgres_database, min_size=0) as pool:
            await self.refused(store, pool, "pool.*acquire")

    async def test_connection_to_another_kind_of_database_is_refused(self, store: PostgresStore) -> None:
        engine = create_engine("sqlite://")
        with engine.connect() as connection:
            await self.refused(store, connection, "sqlite")
        engine.dispose()

    async def test_database_without_the_schema_is_refused(
        self, store: PostgresStore, postgres_server: PostgresServer
    ) -> None:
        async with asyncpg_connection(postgres_server.url()) as connection:
            await self.refused(store, connection, "without Duetime's tables")
        with psycopg.connect(postgres_server.url()) as connection:
            await self.refused(store, connection, "without Duetime's tables")
        async with alchemy_async(postgres_server.url()) as connection:
            await self.refused(store, connection, "without Duetime's tables")

    async def test_another_database_with_the_schema_is_refused(
        self, store: PostgresStore, postgres_url: str
    ) -> None:
        """Its workers would run the job, or none would."""
        other = PostgresStore.from_url(postgres_url)
        await other.migrate()
        async with asyncpg_connection(postgres_url) as connection:
            await self.refused(store, connection, "another database")
        await other.open()
        assert await other.list_jobs(JobFilter(TENANT), 10) == []
        await other.close()

    async def test_errors_of_the_caller_are_not_translated(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        connection = await asyncpg.connect(postgres_database)
        await connection.execute("BEGIN")
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.execute("SELECT 1 FROM no_such_table")
        with pytest.raises(asyncpg.InFailedSQLTransactionError):
            await store.within(connection).add_jobs([job(0)])
        await connection.close()

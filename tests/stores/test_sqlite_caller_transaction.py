"""Jobs stored in a caller's own transaction on the same SQLite file: visible if and when it commits."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy
from sqlalchemy import orm

from duetime.errors import InvalidInput, StoreUnavailable
from duetime.model.hint import Hint, JobHint
from duetime.model.job import HIGHEST_PRIORITY, JobFilter, State
from duetime.store import CallerTransaction
from duetime.stores.sqlite import SqliteStore
from duetime.testing.conformance.drafts import HOUR, QUEUE, TENANT, add, claim_one, job, jobs, joined, stored

TIMEOUT_SECONDS = 60.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "duetime.db"


@pytest.fixture
async def store(path: Path, sqlite_template: Path) -> AsyncIterator[SqliteStore]:
    shutil.copyfile(sqlite_template, path)
    opened = SqliteStore(path)
    await opened.open()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (name TEXT PRIMARY KEY)")
    connection.close()
    yield opened
    await opened.close()


@pytest.fixture
def connection(path: Path, store: SqliteStore) -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(path)
    yield opened
    opened.close()


async def pending(store: SqliteStore) -> set[UUID]:
    return {found.id for found in await store.list_jobs(JobFilter(TENANT), 100)}


class TestStandardLibrary:
    async def test_job_is_visible_after_the_commit(
        self, store: SqliteStore, connection: sqlite3.Connection
    ) -> None:
        now, node = await store.time(), await joined(store)
        connection.execute("INSERT INTO orders VALUES ('one')")
        draft = job(now, queue="new", limit_key="a", payload=b"[1]", unique_key="key")
        caller = store.within(connection)
        assert caller.blocking
        assert caller.add_jobs_now([draft]) == [draft.id]
        assert await store.get_job(TENANT, draft.id) is None
        connection.commit()
        assert (await stored(store, draft.id)).payload == b"[1]"
        assert [queue.name for queue in await store.queues()] == ["new"]
        await add(store, job(now))
        assert (await claim_one(store, node)).id != draft.id

    async def test_rollback_leaves_nothing(self, store: SqliteStore, connection: sqlite3.Connection) -> None:
        now = await store.time()
        connection.execute("INSERT INTO orders VALUES ('one')")
        store.within(connection).add_jobs_now(jobs(200, now, queue="new"))
        connection.rollback()
        assert await pending(store) == set()
        assert await store.queues() == []
        draft = await add(store, job(now, queue="new"))
        assert [queue.name for queue in await store.queues()] == ["new"], "it took the name for stored"
        assert await pending(store) == {draft.id}

    async def test_first_write_of_the_transaction_may_be_a_job(
        self, store: SqliteStore, connection: sqlite3.Connection
    ) -> None:
        draft = job(await store.time())
        store.within(connection).add_jobs_now([draft])
        assert connection.in_transaction
        connection.rollback()
        assert await pending(store) == set()

    async def test_unique_keys_and_repeated_drafts_are_recognised(
        self, store: SqliteStore, connection: sqlite3.Connection
    ) -> None:
        now = await store.time()
        holder = await add(store, job(now, unique_key="key"))
        caller = store.within(connection)
        assert caller.add_jobs_now([job(now, unique_key="key"), holder]) == [holder.id, holder.id]
        assert caller.add_jobs_now([]) == []
        connection.commit()
        assert await pending(store) == {holder.id}

    async def test_connection_in_autocommit_mode_is_refused(self, store: SqliteStore, path: Path) -> None:
        opened = sqlite3.connect(path, isolation_level=None)
        draft = job(await store.time())
        caller = store.within(opened)
        with pytest.raises(InvalidInput, match='execute "BEGIN" first') as refused:
            caller.add_jobs_now([draft])
        assert refused.value.field == "connection"
        opened.execute("BEGIN")
        caller.add_jobs_now([draft])
        opened.execute("COMMIT")
        opened.close()
        assert await pending(store) == {draft.id}

    @pytest.mark.parametrize("name", ["other.db", ":memory:"])
    async def test_connection_to_another_file_is_refused(
        self, store: SqliteStore, tmp_path: Path, name: str
    ) -> None:
        opened = sqlite3.connect(name if name == ":memory:" else tmp_path / name)
        with pytest.raises(InvalidInput, match=r"connect to that file"):
            store.within(opened).add_jobs_now([job(0)])
        opened.close()

    async def test_same_file_under_another_name_is_accepted(
        self, store: SqliteStore, path: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "link.db").symlink_to(path)
        opened = sqlite3.connect(tmp_path / "link.db")
        draft = job(await store.time())
        store.within(opened).add_jobs_now([draft])
        opened.commit()
        opened.close()
        assert await pending(store) == {draft.id}

    @pytest.mark.parametrize(
        "factory", [sqlite3.Row, lambda cursor, row: dict(zip(cursor.description, row, strict=True))]
    )
    async def test_row_factory_of_the_caller_is_respected(
        self, store: SqliteStore, connection: sqlite3.Connection, factory: Any
    ) -> None:
        connection.row_factory = factory
        now = await store.time()
        holder = await add(store, job(now, unique_key="key"))
        assert store.within(connection).add_jobs_now([job(now, unique_key="key")]) == [holder.id]
        assert connection.row_factory is factory

    async def test_write_lock_is_taken_before_anything_is_read(self, store: SqliteStore, path: Path) -> None:
        """SQLite refuses a write in a transaction after whose first read others wrote."""
        other, opened = (sqlite3.connect(path, timeout=0, isolation_level=None) for _ in range(2))
        kept_out = 0

        def write_elsewhere(_: str) -> None:
            nonlocal kept_out
            try:
                other.execute("INSERT INTO orders VALUES (hex(randomblob(8)))")
            except sqlite3.OperationalError:
                kept_out += 1

        opened.execute("BEGIN")
        opened.set_trace_callback(write_elsewhere)
        draft = job(await store.time())
        store.within(opened).add_jobs_now([draft])
        opened.set_trace_callback(None)
        opened.execute("COMMIT")
        assert await pending(store) == {draft.id}
        assert kept_out, "no other connection tried to write in between"
        other.close()
        opened.close()

    async def test_transaction_with_a_stale_snapshot_is_refused_with_a_remedy(
        self, store: SqliteStore, path: Path
    ) -> None:
        opened = sqlite3.connect(path, isolation_level=None)
        opened.execute("BEGIN")
        opened.execute("SELECT * FROM orders").fetchall()
        await add(store, job(await store.time()))
        with pytest.raises(StoreUnavailable, match=r"roll back and repeat.*BEGIN IMMEDIATE"):
            store.within(opened).add_jobs_now([job(0)])
        opened.close()

    async def test_locked_file_raises_store_unavailable(self, store: SqliteStore, path: Path) -> None:
        opened = sqlite3.connect(path, timeout=0)
        transaction = await store.begin_transaction()
        with pytest.raises(StoreUnavailable, match="locked"):
            store.within(opened).add_jobs_now([job(0)])
        await transaction.abandon()
        opened.close()

    async def test_listeners_are_notified_after_the_commit(
        self, store: SqliteStore, connection: sqlite3.Connection
    ) -> None:
        heard, woken = list[Hint](), asyncio.Event()

        def listen(hint: Hint) -> None:
            heard.append(hint)
            woken.set()

        store.subscribe(listen)
        store.within(connection).add_jobs_now([job(await store.time())])
        connection.commit()
        await asyncio.wait_for(woken.wait(), TIMEOUT_SECONDS)
        assert JobHint("*", HIGHEST_PRIORITY, 0) in heard

    async def test_connection_is_used_on_its_own_thread(self, store: SqliteStore, path: Path) -> None:
        draft = job(await store.time())

        def work() -> None:
            opened = sqlite3.connect(path)
            store.within(opened).add_jobs_now([draft])
            opened.commit()
            opened.close()

        await asyncio.to_thread(work)
        assert await pending(store) == {draft.id}

    async def test_awaiting_add_jobs_stores_the_same(
        self, store: SqliteStore, connection: sqlite3.Connection
    ) -> None:
        draft = job(await store.time())
        assert await store.within(connection).add_jobs([draft]) == [draft.id]
        connection.commit()
        assert await pending(store) == {draft.id}


class TestSqlalchemy:
    @pytest.fixture
    def engine(self, path: Path, store: SqliteStore) -> Iterator[sqlalchemy.Engine]:
        made = sqlalchemy.create_engine(f"sqlite:///{path}")
        yield made
        made.dispose()

    @pytest.mark.parametrize("own_statement", ["before", "after", "none"])
    @pytest.mark.parametrize("commit", [True, False])
    async def test_sqlalchemy_connection(
        self, store: SqliteStore, engine: sqlalchemy.Engine, commit: bool, own_statement: str
    ) -> None:
        """The caller's own statement comes before the job, after it, or not at all."""
        draft, insert = job(await store.time()), sqlalchemy.text("INSERT INTO orders VALUES ('one')")
        with engine.connect() as connection:
            if own_statement == "before":
                connection.execute(insert)
            assert store.within(connection).blocking
            assert store.within(connection).add_jobs_now([draft]) == [draft.id]
            if own_statement == "after":
                connection.execute(insert)
            assert await pending(store) == set()
            if commit:
                connection.commit()
        with engine.connect() as connection:
            orders = connection.execute(sqlalchemy.text("SELECT count(*) FROM orders")).scalar()
        assert (await pending(store), orders) == (
            ({draft.id}, int(own_statement != "none")) if commit else (set(), 0)
        )

    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("scoped", [True, False])
    async def test_sqlalchemy_session(
        self, store: SqliteStore, engine: sqlalchemy.Engine, commit: bool, scoped: bool
    ) -> None:
        draft = job(await store.time())
        session = orm.scoped_session(orm.sessionmaker(engine))() if scoped else orm.Session(engine)
        store.within(session).add_jobs_now([draft])
        session.execute(sqlalchemy.text("INSERT INTO orders VALUES ('one')"))
        if commit:
            session.commit()
        else:
            session.rollback()
        session.close()
        assert await pending(store) == ({draft.id} if commit else set())

    async def test_rolled_back_savepoint_removes_its_jobs(
        self, store: SqliteStore, engine: sqlalchemy.Engine
    ) -> None:
        kept, undone = job(await store.time()), job(await store.time())
        with engine.begin() as connection:
            store.within(connection).add_jobs_now([kept])
            with connection.begin_nested() as nested:
                store.within(connection).add_jobs_now([undone])
                nested.rollback()
        assert await pending(store) == {kept.id}

    async def test_sqlalchemy_autocommit_is_refused(
        self, store: SqliteStore, engine: sqlalchemy.Engine
    ) -> None:
        with (
            engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
            pytest.raises(InvalidInput, match="autocommit"),
        ):
            store.within(connection).add_jobs_now([job(0)])

    async def test_sqlalchemy_engine_is_refused(self, store: SqliteStore, engine: sqlalchemy.Engine) -> None:
        with pytest.raises(InvalidInput, match="Connection or Session"):
            store.within(engine)


DJANGO = """
import asyncio, sys
from pathlib import Path
import django
from django.conf import settings

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}})
django.setup()
from django.db import connection, transaction
from duetime.errors import InvalidInput
from duetime.stores.sqlite import SqliteStore
from duetime.testing.conformance.drafts import job

caller = SqliteStore(Path(sys.argv[1])).within(connection)
assert caller.blocking
kept, undone = job(0), job(0)
with transaction.atomic():
    caller.add_jobs_now([kept])
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES ('django')")
try:
    with transaction.atomic():
        caller.add_jobs_now([undone])
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
try:
    caller.add_jobs_now([undone])
except InvalidInput as refused:
    assert "transaction.atomic()" in str(refused), refused
else:
    raise AssertionError("autocommit was not refused")
print(kept.id)
"""


async def test_django_connection(store: SqliteStore, path: Path) -> None:
    """In a process of its own: Django can be configured only once."""
    command = [sys.executable, "-c", DJANGO, str(path)]
    answer = await asyncio.to_thread(
        lambda: subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    )
    assert answer.returncode == 0, answer.stderr
    assert await pending(store) == {UUID(answer.stdout.strip())}


class ThreadedConnection:
    """As aiosqlite's: a connection with a thread of its own, which runs the functions it is given."""

    def __init__(self, path: Path) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._conn = self._thread.submit(sqlite3.connect, path).result()

    async def _execute(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.wrap_future(self._thread.submit(work, *arguments))

    async def end(self, commit: bool) -> None:
        await self._execute(self._conn.commit if commit else self._conn.rollback)
        await self._execute(self._conn.close)
        self._thread.shutdown()


ThreadedConnection.__module__ = "aiosqlite.core"


@pytest.mark.parametrize("commit", [True, False])
async def test_asynchronous_connection(store: SqliteStore, path: Path, commit: bool) -> None:
    draft, opened = job(await store.time()), ThreadedConnection(path)
    caller: CallerTransaction = store.within(opened)
    assert not caller.blocking
    with pytest.raises(InvalidInput, match="asynchronous"):
        caller.add_jobs_now([draft])
    assert await caller.add_jobs([draft]) == [draft.id]
    await opened.end(commit)
    assert await pending(store) == ({draft.id} if commit else set())


@pytest.mark.parametrize("nonsense", [object(), None, "sqlite:///x", 7, sqlite3])
async def test_objects_that_are_not_connections_are_refused(store: SqliteStore, nonsense: object) -> None:
    with pytest.raises(InvalidInput, match=r"sqlite3\.Connection") as refused:
        store.within(nonsense)
    assert refused.value.field == "connection"


async def test_job_stored_by_a_caller_runs_like_any_other(
    store: SqliteStore, connection: sqlite3.Connection
) -> None:
    node, now = await joined(store), await store.time()
    store.within(connection).add_jobs_now([job(now - HOUR, limit_key="a"), job(now + HOUR)])
    connection.commit()
    claimed = await claim_one(store, node)
    assert (claimed.limit_key, claimed.queue, (await stored(store, claimed.id)).state) == (
        "a",
        QUEUE,
        State.RUNNING,
    )

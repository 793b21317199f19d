"""Jobs stored in a caller's own transaction on the same SQLite file: there with its commit, and never else."""

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
from duetime.store import Guest
from duetime.stores.sqlite import SqliteStore
from duetime.testing.conformance.drafts import HOUR, QUEUE, TENANT, add, claim_one, job, jobs, joined, stored

PATIENCE = 60.0


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
    async def test_the_job_is_there_with_the_commit(self, store: SqliteStore, connection: sqlite3.Connection) -> None:
        now, node = await store.time(), await joined(store)
        connection.execute("INSERT INTO orders VALUES ('one')")
        draft = job(now, queue="new", gate="a", payload=b"[1]", unique_key="key")
        guest = store.guest(connection)
        assert guest.blocking
        assert guest.add_jobs_now([draft]) == [draft.id]
        assert await store.get_job(TENANT, draft.id) is None
        connection.commit()
        assert (await stored(store, draft.id)).payload == b"[1]"
        assert [queue.name for queue in await store.queues()] == ["new"]
        await add(store, job(now))
        assert (await claim_one(store, node)).id != draft.id

    async def test_a_rollback_leaves_nothing(self, store: SqliteStore, connection: sqlite3.Connection) -> None:
        now = await store.time()
        connection.execute("INSERT INTO orders VALUES ('one')")
        store.guest(connection).add_jobs_now(jobs(200, now, queue="new"))
        connection.rollback()
        assert await pending(store) == set()
        assert await store.queues() == []
        draft = await add(store, job(now, queue="new"))
        assert [queue.name for queue in await store.queues()] == ["new"], "it took the name for stored"
        assert await pending(store) == {draft.id}

    async def test_the_first_write_may_be_ours(self, store: SqliteStore, connection: sqlite3.Connection) -> None:
        draft = job(await store.time())
        store.guest(connection).add_jobs_now([draft])
        assert connection.in_transaction
        connection.rollback()
        assert await pending(store) == set()

    async def test_keys_and_repetitions_are_known(self, store: SqliteStore, connection: sqlite3.Connection) -> None:
        now = await store.time()
        holder = await add(store, job(now, unique_key="key"))
        guest = store.guest(connection)
        assert guest.add_jobs_now([job(now, unique_key="key"), holder]) == [holder.id, holder.id]
        assert guest.add_jobs_now([]) == []
        connection.commit()
        assert await pending(store) == {holder.id}

    async def test_autocommit_without_a_transaction_is_refused(self, store: SqliteStore, path: Path) -> None:
        opened = sqlite3.connect(path, isolation_level=None)
        draft = job(await store.time())
        guest = store.guest(opened)
        with pytest.raises(InvalidInput, match='execute "BEGIN" first') as refused:
            guest.add_jobs_now([draft])
        assert refused.value.field == "connection"
        opened.execute("BEGIN")
        guest.add_jobs_now([draft])
        opened.execute("COMMIT")
        opened.close()
        assert await pending(store) == {draft.id}

    @pytest.mark.parametrize("name", ["other.db", ":memory:"])
    async def test_another_file_is_refused(self, store: SqliteStore, tmp_path: Path, name: str) -> None:
        opened = sqlite3.connect(name if name == ":memory:" else tmp_path / name)
        with pytest.raises(InvalidInput, match=r"connect to that file"):
            store.guest(opened).add_jobs_now([job(0)])
        opened.close()

    async def test_the_same_file_by_another_name(self, store: SqliteStore, path: Path, tmp_path: Path) -> None:
        (tmp_path / "link.db").symlink_to(path)
        opened = sqlite3.connect(tmp_path / "link.db")
        draft = job(await store.time())
        store.guest(opened).add_jobs_now([draft])
        opened.commit()
        opened.close()
        assert await pending(store) == {draft.id}

    @pytest.mark.parametrize("factory", [sqlite3.Row, lambda cursor, row: dict(zip(cursor.description, row, strict=True))])
    async def test_a_row_factory_is_no_obstacle(self, store: SqliteStore, connection: sqlite3.Connection, factory: Any) -> None:
        connection.row_factory = factory
        now = await store.time()
        holder = await add(store, job(now, unique_key="key"))
        assert store.guest(connection).add_jobs_now([job(now, unique_key="key")]) == [holder.id]
        assert connection.row_factory is factory

    async def test_others_that_write_do_not_come_in_between(self, store: SqliteStore, path: Path) -> None:
        """SQLite refuses a transaction that writes after others did so behind its first look."""
        other, opened = (sqlite3.connect(path, timeout=0, isolation_level=None) for _ in range(2))
        kept_out = 0

        def write_too(_: str) -> None:
            nonlocal kept_out
            try:
                other.execute("INSERT INTO orders VALUES (hex(randomblob(8)))")
            except sqlite3.OperationalError:
                kept_out += 1

        opened.execute("BEGIN")
        opened.set_trace_callback(write_too)
        draft = job(await store.time())
        store.guest(opened).add_jobs_now([draft])
        opened.set_trace_callback(None)
        opened.execute("COMMIT")
        assert await pending(store) == {draft.id}
        assert kept_out, "nobody tried to write in between"
        other.close()
        opened.close()

    async def test_a_transaction_that_has_read_what_is_past(self, store: SqliteStore, path: Path) -> None:
        opened = sqlite3.connect(path, isolation_level=None)
        opened.execute("BEGIN")
        opened.execute("SELECT * FROM orders").fetchall()
        await add(store, job(await store.time()))
        with pytest.raises(StoreUnavailable, match=r"roll back and repeat.*BEGIN IMMEDIATE"):
            store.guest(opened).add_jobs_now([job(0)])
        opened.close()

    async def test_a_locked_file(self, store: SqliteStore, path: Path) -> None:
        opened = sqlite3.connect(path, timeout=0)
        transaction = await store.transact()
        with pytest.raises(StoreUnavailable, match="locked"):
            store.guest(opened).add_jobs_now([job(0)])
        await transaction.abandon()
        opened.close()

    async def test_workers_hear_of_it_when_it_is_committed(self, store: SqliteStore, connection: sqlite3.Connection) -> None:
        heard, woken = list[Hint](), asyncio.Event()

        def listen(hint: Hint) -> None:
            heard.append(hint)
            woken.set()

        store.subscribe(listen)
        store.guest(connection).add_jobs_now([job(await store.time())])
        connection.commit()
        await asyncio.wait_for(woken.wait(), PATIENCE)
        assert JobHint("*", HIGHEST_PRIORITY, 0) in heard

    async def test_on_the_thread_that_owns_it(self, store: SqliteStore, path: Path) -> None:
        draft = job(await store.time())

        def work() -> None:
            opened = sqlite3.connect(path)
            store.guest(opened).add_jobs_now([draft])
            opened.commit()
            opened.close()

        await asyncio.to_thread(work)
        assert await pending(store) == {draft.id}

    async def test_awaiting_it_comes_to_the_same(self, store: SqliteStore, connection: sqlite3.Connection) -> None:
        draft = job(await store.time())
        assert await store.guest(connection).add_jobs([draft]) == [draft.id]
        connection.commit()
        assert await pending(store) == {draft.id}


class TestSqlalchemy:
    @pytest.fixture
    def engine(self, path: Path, store: SqliteStore) -> Iterator[sqlalchemy.Engine]:
        made = sqlalchemy.create_engine(f"sqlite:///{path}")
        yield made
        made.dispose()

    @pytest.mark.parametrize("theirs", ["before", "after", "none"])
    @pytest.mark.parametrize("commit", [True, False])
    async def test_core(self, store: SqliteStore, engine: sqlalchemy.Engine, commit: bool, theirs: str) -> None:
        """Whether their own statement comes before ours, or after, or not at all."""
        draft, insert = job(await store.time()), sqlalchemy.text("INSERT INTO orders VALUES ('one')")
        with engine.connect() as connection:
            if theirs == "before":
                connection.execute(insert)
            assert store.guest(connection).blocking
            assert store.guest(connection).add_jobs_now([draft]) == [draft.id]
            if theirs == "after":
                connection.execute(insert)
            assert await pending(store) == set()
            if commit:
                connection.commit()
        with engine.connect() as connection:
            orders = connection.execute(sqlalchemy.text("SELECT count(*) FROM orders")).scalar()
        assert (await pending(store), orders) == (({draft.id}, int(theirs != "none")) if commit else (set(), 0))

    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("scoped", [True, False])
    async def test_session(self, store: SqliteStore, engine: sqlalchemy.Engine, commit: bool, scoped: bool) -> None:
        draft = job(await store.time())
        session = orm.scoped_session(orm.sessionmaker(engine))() if scoped else orm.Session(engine)
        store.guest(session).add_jobs_now([draft])
        session.execute(sqlalchemy.text("INSERT INTO orders VALUES ('one')"))
        if commit:
            session.commit()
        else:
            session.rollback()
        session.close()
        assert await pending(store) == ({draft.id} if commit else set())

    async def test_nested_transactions_take_it_back(self, store: SqliteStore, engine: sqlalchemy.Engine) -> None:
        kept, undone = job(await store.time()), job(await store.time())
        with engine.begin() as connection:
            store.guest(connection).add_jobs_now([kept])
            with connection.begin_nested() as nested:
                store.guest(connection).add_jobs_now([undone])
                nested.rollback()
        assert await pending(store) == {kept.id}

    async def test_autocommit_is_refused(self, store: SqliteStore, engine: sqlalchemy.Engine) -> None:
        with (
            engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
            pytest.raises(InvalidInput, match="autocommit"),
        ):
            store.guest(connection).add_jobs_now([job(0)])

    async def test_an_engine_is_no_connection(self, store: SqliteStore, engine: sqlalchemy.Engine) -> None:
        with pytest.raises(InvalidInput, match="Connection or Session"):
            store.guest(engine)


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

guest = SqliteStore(Path(sys.argv[1])).guest(connection)
assert guest.blocking
kept, undone = job(0), job(0)
with transaction.atomic():
    guest.add_jobs_now([kept])
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES ('django')")
try:
    with transaction.atomic():
        guest.add_jobs_now([undone])
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
try:
    guest.add_jobs_now([undone])
except InvalidInput as refused:
    assert "transaction.atomic()" in str(refused), refused
else:
    raise AssertionError("autocommit was not refused")
print(kept.id)
"""


async def test_django(store: SqliteStore, path: Path) -> None:
    """In a process of its own: its settings can be made once only."""
    command = [sys.executable, "-c", DJANGO, str(path)]
    answer = await asyncio.to_thread(lambda: subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False))
    assert answer.returncode == 0, answer.stderr
    assert await pending(store) == {UUID(answer.stdout.strip())}


class ThreadedConnection:
    """As aiosqlite's: a connection with a thread of its own, which carries out what is handed to it."""

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
async def test_a_connection_with_a_thread_of_its_own(store: SqliteStore, path: Path, commit: bool) -> None:
    draft, opened = job(await store.time()), ThreadedConnection(path)
    guest: Guest = store.guest(opened)
    assert not guest.blocking
    with pytest.raises(InvalidInput, match="asynchronous"):
        guest.add_jobs_now([draft])
    assert await guest.add_jobs([draft]) == [draft.id]
    await opened.end(commit)
    assert await pending(store) == ({draft.id} if commit else set())


@pytest.mark.parametrize("nonsense", [object(), None, "sqlite:///x", 7, sqlite3])
async def test_what_is_no_connection(store: SqliteStore, nonsense: object) -> None:
    with pytest.raises(InvalidInput, match=r"sqlite3\.Connection") as refused:
        store.guest(nonsense)
    assert refused.value.field == "connection"


async def test_a_guests_job_runs_like_any_other(store: SqliteStore, connection: sqlite3.Connection) -> None:
    node, now = await joined(store), await store.time()
    store.guest(connection).add_jobs_now([job(now - HOUR, gate="a"), job(now + HOUR)])
    connection.commit()
    claimed = await claim_one(store, node)
    assert (claimed.gate, claimed.queue, (await stored(store, claimed.id)).state) == ("a", QUEUE, State.RUNNING)

"""Transactions of tasks on PostgreSQL: their sessions, and what remains when these break."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import asyncpg
import psycopg
import pytest

from duetime.errors import StoreError, StoreUnavailable
from duetime.model.hint import DoneHint, Hint, JobHint
from duetime.model.job import Ending, State
from duetime.stores.postgres import PostgresStore, task_transaction
from duetime.testing.conformance.drafts import HOUR, announce, ended, job, joined, started, stored, success
from tests.servers.proxy import Proxy
from tests.stores.conftest import NAME

TASK = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'duetime task' AND datname = %s"
END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'duetime task'"


@pytest.fixture(autouse=True)
def effects(postgres_database: str) -> None:
    """An empty table of the tasks themselves."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS effects (amount bigint)")
        connection.execute("DELETE FROM effects")


def total(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT coalesce(sum(amount), 0)::bigint FROM effects").fetchone()
    assert row is not None
    return int(row[0])


def execute(url: str, statement: str, *values: object) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement, values).fetchall()


async def add_one(connection: Any) -> None:
    await connection.execute("INSERT INTO effects VALUES (1)")


class TestSessions:
    async def test_task_gets_the_types_of_the_driver(self, store: PostgresStore) -> None:
        """Not the integers that the store uses for instants."""
        transaction = await store.begin_transaction()
        moment = datetime(2026, 11, 15, 12, tzinfo=UTC)
        assert await transaction.connection.fetchval("SELECT $1::timestamptz", moment) == moment
        assert isinstance(transaction.connection, asyncpg.Connection)
        await transaction.abandon()

    async def test_savepoints_work(self, store: PostgresStore, postgres_database: str) -> None:
        node = await joined(store)
        claimed = await started(store, node, job(await store.time()))
        transaction = await store.begin_transaction()
        async with transaction.connection.transaction():
            await add_one(transaction.connection)
        with pytest.raises(asyncpg.UndefinedTableError):
            async with transaction.connection.transaction():
                await transaction.connection.execute("INSERT INTO no_such_table VALUES (1)")
        assert await transaction.finish(success(claimed, await store.time()))
        assert total(postgres_database) == 1

    async def test_session_is_reset_between_tasks(self, store: PostgresStore) -> None:
        node = await joined(store)
        sessions = set()
        for _ in range(5):
            claimed = await started(store, node, job(await store.time()))
            transaction = await store.begin_transaction()
            sessions.add(await transaction.connection.fetchval("SELECT pg_backend_pid()"))
            assert await transaction.connection.fetchval("SHOW work_mem") == "4MB"
            assert (
                await transaction.connection.fetchval(
                    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77"
                )
                == 0
            )
            await transaction.connection.execute("SET work_mem = '8MB'; SELECT pg_advisory_lock(77)")
            assert await transaction.finish(success(claimed, await store.time()))
        assert len(sessions) == 1

    async def test_task_session_has_timeouts(self, store: PostgresStore) -> None:
        transaction = await store.begin_transaction()
        shown = [
            await transaction.connection.fetchval(f"SHOW {name}") for name in task_transaction.TASK_TIMEOUTS
        ]
        assert shown == ["1min", "10s", "1min"]
        await transaction.abandon()

    async def test_number_of_sessions_is_limited(
        self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A task waits for a free session, but not for long."""
        held = await asyncio.gather(
            *(store.begin_transaction() for _ in range(task_transaction.MAX_SESSIONS))
        )
        monkeypatch.setattr(task_transaction, "CALL_TIMEOUT", 0.05)
        with pytest.raises(StoreUnavailable, match="20 tasks"):
            await store.begin_transaction()
        monkeypatch.undo()
        waiting = asyncio.create_task(store.begin_transaction())
        await asyncio.sleep(0)
        await held[0].abandon()
        await (await waiting).abandon()
        for transaction in held:
            await transaction.abandon()

    async def test_a_session_that_the_server_ended_is_told_from_one_in_use(
        self, store: PostgresStore
    ) -> None:
        ended, busy = await store.begin_transaction(), await store.begin_transaction()
        with pytest.raises(asyncpg.PostgresError):
            await ended.connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert await ended.abandon() is False
        left = asyncio.ensure_future(busy.connection.execute("SELECT pg_sleep(60)"))
        await asyncio.sleep(0)
        assert await busy.abandon() is True
        await asyncio.gather(left, return_exceptions=True)

    async def test_session_is_closed_if_its_task_is_cancelled_while_it_begins(
        self, store: PostgresStore
    ) -> None:
        kept = await store.begin_transaction()
        await kept.abandon()
        beginning = asyncio.create_task(store.begin_transaction())
        await asyncio.sleep(0)  # the statement is on its way
        beginning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await beginning
        assert kept.connection.is_closed()

    async def test_closing_the_store_ends_the_sessions(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        open_one, idle = await store.begin_transaction(), await store.begin_transaction()
        await add_one(open_one.connection)
        await idle.abandon()
        assert execute(postgres_database, TASK, NAME) == [(2,)]
        await store.close()
        while execute(postgres_database, TASK, NAME) != [(0,)]:
            await asyncio.sleep(0)
        assert total(postgres_database) == 0
        await open_one.abandon()

    async def test_hints_are_sent_after_the_commit(self, store: PostgresStore) -> None:
        node, now = await joined(store), await store.time()
        heard: asyncio.Queue[Hint] = asyncio.Queue()
        store.subscribe(heard.put_nowait)
        done, again = await started(store, node, job(now)), await started(store, node, job(now))
        assert await announce(store, done.id)
        assert await announce(store, again.id)
        snoozed = ended(again, State.PENDING, Ending.SNOOZED, now, due_at=now)
        async with asyncio.timeout(60):
            assert (await heard.get()) == JobHint("*", 0, 0)
            while not heard.empty():
                heard.get_nowait()
            for decision in (success(done, now), snoozed):
                assert await (await store.begin_transaction()).finish(decision)
            seen = {await heard.get(), await heard.get()}
            while not {DoneHint(done.id), JobHint(again.queue, again.priority, now)} <= seen:
                seen.add(await heard.get())
        assert DoneHint(again.id) not in seen


class TestBrokenSessions:
    async def test_dead_idle_session_is_replaced(self, store: PostgresStore, postgres_database: str) -> None:
        await (await store.begin_transaction()).abandon()
        assert execute(postgres_database, END) == [(True,)]
        transaction = await store.begin_transaction()
        assert await transaction.connection.fetchval("SELECT 7") == 7
        await transaction.abandon()

    async def test_session_lost_in_a_transaction_commits_nothing(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """And the job can still be settled."""
        node = await joined(store)
        claimed = await started(store, node, job(await store.time()))
        transaction = await store.begin_transaction()
        await add_one(transaction.connection)
        execute(postgres_database, END)
        with pytest.raises(StoreUnavailable):
            await transaction.finish(success(claimed, await store.time()))
        await transaction.abandon()
        assert total(postgres_database) == 0
        assert (await stored(store, claimed.id)).state is State.RUNNING

    @pytest.mark.parametrize("committed", [False, True])
    async def test_lost_reply_to_a_commit_is_reported(
        self, far: PostgresStore, proxy: Proxy, postgres_database: str, committed: bool
    ) -> None:
        """Both were written, or neither."""
        node = await joined(far)
        claimed = await started(far, node, job(await far.time()))
        transaction = await far.begin_transaction()
        await add_one(transaction.connection)
        cut: Callable[[bytes], None] = proxy.drop_after if committed else proxy.drop_before
        cut(b"COMMIT")
        with pytest.raises(StoreUnavailable):
            await transaction.finish(success(claimed, await far.time()))
        assert proxy.dropped.is_set()
        assert (await stored(far, claimed.id)).state is (State.SUCCEEDED if committed else State.RUNNING)
        assert total(postgres_database) == int(committed)

    async def test_unreachable_server_costs_no_session(self, far: PostgresStore, proxy: Proxy) -> None:
        await proxy.refuse()
        for _ in range(2 * task_transaction.MAX_SESSIONS):  # a failure must not cost a session
            with pytest.raises(StoreUnavailable):
                await far.begin_transaction()
        await proxy.pass_through()
        await (await far.begin_transaction()).abandon()


class TestMisbehavingTasks:
    @pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK"])
    async def test_task_must_not_end_its_transaction(self, store: PostgresStore, statement: str) -> None:
        node = await joined(store)
        claimed = await started(store, node, job(await store.time()))
        transaction = await store.begin_transaction()
        await transaction.connection.execute(statement)
        with pytest.raises(StoreError, match="leave COMMIT and ROLLBACK"):
            await transaction.finish(success(claimed, await store.time()))
        assert (await stored(store, claimed.id)).state is State.RUNNING
        again = await store.begin_transaction()
        await add_one(again.connection)
        assert await again.finish(success(claimed, await store.time()))

    async def test_task_must_not_ignore_a_failed_statement(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """The server can commit nothing of the transaction any more."""
        node = await joined(store)
        claimed = await started(store, node, job(await store.time()))
        transaction = await store.begin_transaction()
        await add_one(transaction.connection)
        with pytest.raises(asyncpg.UndefinedTableError):
            await transaction.connection.execute("INSERT INTO no_such_table VALUES (1)")
        with pytest.raises(StoreError, match="savepoint"):
            await transaction.finish(success(claimed, await store.time()))
        assert total(postgres_database) == 0
        assert (await stored(store, claimed.id)).state is State.RUNNING

    async def test_transaction_finishes_once(self, store: PostgresStore) -> None:
        node = await joined(store)
        claimed = await started(store, node, job(await store.time()))
        transaction = await store.begin_transaction()
        assert await transaction.finish(success(claimed, await store.time()))
        with pytest.raises(StoreError, match="over"):
            await transaction.finish(success(claimed, await store.time()))

    async def test_deferred_constraint_fails_the_commit(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        node = await joined(store)
        claimed = await started(store, node, job(await store.time() - HOUR))
        transaction = await store.begin_transaction()
        await transaction.connection.execute(
            "CREATE TABLE deferred (id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED); "
            "INSERT INTO deferred VALUES (1), (1)"
        )
        with pytest.raises(StoreError, match="deferred"):
            await transaction.finish(success(claimed, await store.time()))
        assert (await stored(store, claimed.id)).state is State.RUNNING
        assert execute(postgres_database, "SELECT to_regclass('deferred')::text") == [(None,)]

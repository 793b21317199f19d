"""The PostgreSQL store when the server, the network or another process fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import psycopg
import pytest

from duetime.clock import monotonic_micros
from duetime.errors import ConfigError, NotOpen, SchemaMissing, SchemaTooNew, StoreError, StoreUnavailable
from duetime.model.hint import EventHint, Hint, JobHint
from duetime.model.instant import SECOND
from duetime.model.job import Ending, JobFilter, State
from duetime.model.schedule import ScheduleFilter
from duetime.store import OfNode
from duetime.stores.postgres import PostgresStore, notifier, schema
from duetime.testing.conformance.drafts import (
    HOUR,
    TENANT,
    add,
    claim,
    claim_one,
    ended,
    firing,
    job,
    jobs,
    joined,
    live_counts,
    put,
    put_schedule,
    remove_schedule,
    request,
    schedule,
    settle,
    started,
    stored,
    success,
)
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Proxy
from tests.stores.conftest import NAME

Cut = Callable[[Proxy, bytes], None]
BEFORE: Cut = lambda proxy, marker: proxy.drop_before(marker)  # noqa: E731
AFTER: Cut = lambda proxy, marker: proxy.drop_after(marker)  # noqa: E731


def terminate(url: str, connection_name: str) -> int:
    """End the server's sessions of this connection; returns how many there were."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            [f"duetime {connection_name}"],
        )
        return len(ended.fetchall())


async def until_connected(url: str, expected: set[str]) -> None:
    """Until these are the sessions of the store: the server takes a moment to forget one."""
    query = (
        "SELECT application_name FROM pg_stat_activity "
        "WHERE datname = %s AND application_name LIKE 'duetime %%'"
    )
    with psycopg.connect(url, autocommit=True) as connection:

        async def found() -> bool:
            return {
                name.removeprefix("duetime ") for (name,) in connection.execute(query, [NAME])
            } == expected

        await until(found)


async def until(condition: Callable[[], Awaitable[Any]], seconds: float = 60.0) -> Any:
    async with asyncio.timeout(seconds):
        while not (found := await condition()):
            await asyncio.sleep(0)
        return found


class TestMigrations:
    async def test_concurrent_migrations_apply_it_once(self, postgres_url: str) -> None:
        """One process applies it, the others find it done."""
        stores = [PostgresStore.from_url(postgres_url) for _ in range(8)]
        migrations = await asyncio.gather(*(store.migrate() for store in stores))
        assert {migration.after for migration in migrations} == {len(schema.MIGRATIONS)}
        await stores[0].open()
        await add(stores[0], job(0))
        assert (await stores[0].migrate()).steps == ()
        await asyncio.gather(*(store.close() for store in stores))

    async def test_store_without_a_schema_does_not_open(self, postgres_url: str) -> None:
        store = PostgresStore.from_url(postgres_url)
        with pytest.raises(SchemaMissing, match="duetime migrate"):
            await store.open()
        with pytest.raises(SchemaMissing, match="duetime migrate"):
            await store.queues()
        await store.close()

    async def test_newer_schema_is_refused(self, postgres_url: str) -> None:
        store = PostgresStore.from_url(postgres_url)
        await store.migrate()
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("INSERT INTO duetime.schema_version VALUES (1000, now())")
        for verb in (store.open, store.migrate):
            with pytest.raises(SchemaTooNew, match="1000"):
                await verb()
        await store.close()

    async def test_failed_migration_leaves_nothing(
        self, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = PostgresStore.from_url(postgres_url)
        with monkeypatch.context() as broken:
            broken.setattr(schema, "MIGRATIONS", ["CREATE TABLE duetime.half (id bigint); SELECT 1 / 0"])
            with pytest.raises(StoreError, match="division by zero"):
                await store.migrate()
        with psycopg.connect(postgres_url) as connection:
            assert connection.execute(
                "SELECT count(*) FROM pg_namespace WHERE nspname = 'duetime'"
            ).fetchone() == (0,)
        assert (await store.migrate()).before == 0
        await store.close()


class TestConnections:
    async def test_only_used_connections_are_opened(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """A heartbeat in its own thread needs one connection, a client that submits one more for its
        hints."""
        await until_connected(postgres_database, {"submit"})
        other = store.clone()
        await other.open()
        node = await joined(other)
        await other.beat(node, HOUR)
        await until_connected(postgres_database, {"submit", "heartbeat"})
        await store.add_jobs(jobs(10, 0))
        await other.close()
        await until_connected(postgres_database, {"submit", "listen"})

    async def test_closed_store_can_be_opened_again(self, store: PostgresStore) -> None:
        await store.time()
        await store.close()
        with pytest.raises(NotOpen, match="open"):
            await store.time()
        await store.open()
        assert await store.time() > 0


class TestLostConnections:
    async def test_terminated_session_is_replaced(self, store: PostgresStore, postgres_database: str) -> None:
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now)

        verbs: dict[str, Callable[[], Awaitable[object]]] = {
            "submit": lambda: add(store, job(now)),
            "claim": lambda: store.due_jobs(request(node)),
            "sweep": lambda: store.expire_nodes(node),
            "settle": lambda: settle(store, [success(taken, now)]),
            "plan": lambda: store.fire([firing(made, now + HOUR, now)]),
            "read": store.time,
            "heartbeat": lambda: store.beat(node, HOUR),
            "listen": lambda: store.hint([JobHint("queue", 5, now)]),
        }
        taken = await started(store, node, job(now))
        for name, verb in verbs.items():
            await verb()
            assert terminate(postgres_database, name) == 1, name
            await verb()
        assert (await stored(store, taken.id)).state is State.SUCCEEDED

    async def test_listening_resumes_after_a_lost_session(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """And a hint says that everything should be looked at."""
        heard: asyncio.Queue[Hint] = asyncio.Queue()
        store.subscribe(heard.put_nowait)
        async with asyncio.timeout(60):
            assert [await heard.get(), await heard.get()] == [JobHint("*", 0, 0), EventHint(0)]
            assert terminate(postgres_database, "listen") == 1
            assert [await heard.get(), await heard.get()] == [JobHint("*", 0, 0), EventHint(0)]
            other = store.clone()
            await other.hint([JobHint("a queue", 7, 12)])
            assert await heard.get() == JobHint("a queue", 7, 12)
            await other.close()

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    @pytest.mark.parametrize("number", [1, 3, 300])
    async def test_add_jobs_is_repeated_after_a_lost_reply(
        self, far: PostgresStore, proxy: Proxy, cut: Cut, number: int
    ) -> None:
        """Whether or not it was committed, the repetition leaves each job once."""
        now = await far.time()
        await far.add_jobs(jobs(number, now - HOUR))
        drafts = [*jobs(number - 1, now), job(now, payload=b"MARKER")]
        cut(proxy, b"MARKER")
        assert await far.add_jobs(drafts) == [draft.id for draft in drafts]
        assert proxy.dropped.is_set()
        [count] = (await live_counts(far)).values()
        assert count.pending == 2 * number

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    @pytest.mark.parametrize("with_failures", [False, True])
    async def test_settle_is_repeated_after_a_lost_reply(
        self, far: PostgresStore, proxy: Proxy, cut: Cut, with_failures: bool
    ) -> None:
        """Nothing is refused, nothing is written twice."""
        node, now = await joined(far), await far.time()
        await far.add_jobs(jobs(10, now - HOUR))
        claimed = await claim(far, request(node))
        decisions = [success(row, now, result=b"MARKER") for row in claimed]
        if with_failures:
            decisions[3] = ended(
                claimed[3], State.PENDING, Ending.FAILED, now, due_at=now + HOUR, failures=1, error="boom"
            )
            decisions[4] = ended(claimed[4], State.DEAD, Ending.FAILED, now, error="boom")
        cut(proxy, b"MARKER")
        assert await settle(far, decisions) == []
        assert proxy.dropped.is_set()
        found = await far.list_jobs(JobFilter(TENANT), 100)
        assert sorted(row.id for row in found) == sorted(row.id for row in claimed)
        assert {row.id: row.state for row in found} == {decision.id: decision.state for decision in decisions}
        assert [len(await far.list_attempts(row.id)) for row in claimed[3:5]] == [int(with_failures)] * 2

    async def test_claim_is_not_repeated_after_a_lost_reply(self, far: PostgresStore, proxy: Proxy) -> None:
        """The worker must learn which jobs it has."""
        node, now = await joined(far), await far.time()
        await claim(far, request(node))
        draft = await add(far, job(now, target="MARKER"))
        proxy.drop_after(b"MARKER")
        with pytest.raises(StoreUnavailable):
            await claim(far, request(node, targets=("MARKER",)))
        assert [(row.id, row.attempt) for row in await far.running_jobs(OfNode(node), 1_000)] == [
            (draft.id, 1)
        ]

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_fire_is_repeated_after_a_lost_reply(
        self, far: PostgresStore, proxy: Proxy, cut: Cut
    ) -> None:
        """The cursor moves once and the jobs are stored once."""
        now = await far.time()
        made = [await put(far, schedule(f"schedule {number}"), now) for number in range(5)]
        cut(proxy, made[2].id.bytes)
        await far.fire([firing(each, now + HOUR, now) for each in made])
        assert proxy.dropped.is_set()
        assert len(await far.list_jobs(JobFilter(TENANT), 100)) == 5
        cursors = [
            (found.next_fire_time, found.runs)
            for found in await far.list_schedules(ScheduleFilter(TENANT), 10)
        ]
        assert cursors == [(now + HOUR, 1)] * 5

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_creating_a_schedule_is_repeated_after_a_lost_reply(
        self, far: PostgresStore, proxy: Proxy, cut: Cut
    ) -> None:
        await put(far, schedule("first"), 1)
        cut(proxy, b"MARKER")
        made = await put_schedule(far, schedule(payload=b"MARKER"), 1, 0)
        assert proxy.dropped.is_set()
        assert made == await far.get_schedule(TENANT, "schedule")
        assert made is not None

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_creating_schedules_concurrently_is_repeated_after_a_lost_reply(
        self, far: PostgresStore, proxy: Proxy, cut: Cut
    ) -> None:
        """The second try returns the schedules that the first created, and None for a name that was taken
        before."""
        await put(far, schedule("taken"), 1)
        cut(proxy, b"MARKER")
        drafts = [schedule(name, payload=b"MARKER") for name in ("first", "taken", "second")]
        made = await asyncio.gather(*(put_schedule(far, draft, 1, 0) for draft in drafts))
        assert proxy.dropped.is_set()
        assert [None if one is None else one.id for one in made] == [drafts[0].id, None, drafts[2].id]

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_editing_and_removing_a_schedule_is_repeated_after_a_lost_reply(
        self, far: PostgresStore, proxy: Proxy, cut: Cut
    ) -> None:
        first = await put(far, schedule(), 1)
        cut(proxy, b"COMMIT")
        edited = await put_schedule(far, schedule(payload=b"second"), 2, first.version)
        assert proxy.dropped.is_set()
        assert edited == await far.get_schedule(TENANT, "schedule")
        assert edited is not None
        cut(proxy, b"COMMIT")
        removed = await remove_schedule(far, TENANT, "schedule")
        assert removed is not None
        assert (removed.draft, removed.version) == (edited.draft, edited.version)
        assert proxy.dropped.is_set()
        assert await far.get_schedule(TENANT, "schedule") is None

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_doubtful_record_write_is_reported(
        self, far: PostgresStore, proxy: Proxy, cut: Cut
    ) -> None:
        """A caller must not be told that another was first when it may have been its own first try."""
        await far.put_record("kind", TENANT, "other", b"", expect=0)
        cut(proxy, b"MARKER")
        if cut is BEFORE:
            assert await far.put_record("kind", TENANT, "key", b"MARKER", expect=0) > 0
        else:
            with pytest.raises(StoreUnavailable, match="read it again"):
                await far.put_record("kind", TENANT, "key", b"MARKER", expect=0)
        assert proxy.dropped.is_set()
        found = await far.get_record("kind", TENANT, "key")
        assert found is not None
        assert found.value == b"MARKER"


class TestOutages:
    @pytest.mark.slow
    async def test_server_crash_is_survived(self) -> None:
        """The store reports it immediately, and continues when the server is back, with everything it had
        accepted."""
        with PostgresServer(durable=True) as server:
            store = PostgresStore.from_url(server.url())
            await store.migrate()
            await store.open()
            node, now = await joined(store), await store.time()
            draft = await add(store, job(now))
            server.crash()
            for verb in (
                lambda: add(store, job(now)),
                lambda: claim(store, request(node)),
                store.time,
                lambda: store.beat(node, HOUR),
            ):
                with pytest.raises(StoreUnavailable):
                    await asyncio.wait_for(verb(), 60)
            server.start()
            assert (await claim_one(store, node)).id == draft.id
            await store.close()

    @pytest.mark.slow
    async def test_silent_network_is_noticed(self, far: PostgresStore, proxy: Proxy) -> None:
        """After five seconds, and waiting calls fail with the first one: otherwise it would take 25."""
        await far.time()
        await proxy.blackhole()
        began = monotonic_micros()
        outcomes = await asyncio.gather(*(far.time() for _ in range(5)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 5
        assert monotonic_micros() - began < 20 * SECOND
        await proxy.pass_through()
        assert await far.time() > 0

    @pytest.mark.slow
    async def test_silent_listening_session_is_replaced(
        self, far: PostgresStore, store: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It looks open and brings nothing: the listener asks for an answer now and then."""
        monkeypatch.setattr(notifier, "LISTEN_CHECK_INTERVAL", 0.1)
        heard: asyncio.Queue[Hint] = asyncio.Queue()
        far.subscribe(heard.put_nowait)
        async with asyncio.timeout(60):
            assert [await heard.get(), await heard.get()] == [JobHint("*", 0, 0), EventHint(0)]
            proxy.silence()
            assert [await heard.get(), await heard.get()] == [JobHint("*", 0, 0), EventHint(0)]
            await store.hint([JobHint("a queue", 7, 12)])
            assert await heard.get() == JobHint("a queue", 7, 12)

    async def test_refused_connection_is_an_outage(self, far: PostgresStore, proxy: Proxy) -> None:
        await proxy.refuse()
        with pytest.raises(StoreUnavailable, match="safe to repeat"):
            await far.time()
        await proxy.pass_through()
        assert await far.time() > 0

    async def test_locked_table_delays_only_its_connection(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """The server limits the wait; the other connections continue."""
        with psycopg.connect(postgres_database) as connection:
            connection.execute("LOCK TABLE duetime.schedules")
            waiting = asyncio.create_task(put_schedule(store, schedule(), 1, 0))
            await store.queues()
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                await waiting
        assert await put_schedule(store, schedule(), 1, 0) is not None

    async def test_read_only_server_is_an_outage(self, store: PostgresStore, postgres_database: str) -> None:
        fresh = store.clone()  # the setting is for sessions to come
        await fresh.open()
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {NAME} SET default_transaction_read_only = on")
            try:
                with pytest.raises(StoreUnavailable, match="read-only"):
                    await add(fresh, job(0))
            finally:
                connection.execute("SET default_transaction_read_only = off")
                connection.execute(f"ALTER DATABASE {NAME} RESET default_transaction_read_only")
        await add(fresh, job(0))
        await fresh.close()

    async def test_reply_that_meets_the_timeout_after_a_blocked_loop_is_an_outage(
        self, store: PostgresStore
    ) -> None:
        """The driver fails on a connection that is closed between two of its steps; that is not a bug of the
        statement."""
        connection = store._connections.read
        await connection.value("SELECT 1")
        call = asyncio.create_task(
            connection.run(lambda driver, _: driver.fetchval("SELECT 4711 + $1::bigint", 1), timeout=0.2)
        )
        await asyncio.sleep(0)  # it is on its way
        time.sleep(0.5)  # a task blocks
        with pytest.raises(StoreUnavailable, match="no answer in time"):
            await call
        assert await connection.value("SELECT 4711") == 4711


class TestConflicts:
    async def test_work_is_repeated_after_a_deadlock(self, store: PostgresStore) -> None:
        tries = iter(
            [asyncpg.DeadlockDetectedError("deadlock"), asyncpg.SerializationError("serialization"), None]
        )

        async def work(connection: Any, _is_retry: bool) -> int:
            if (problem := next(tries)) is not None:
                raise problem
            return int(await connection.fetchval("SELECT 7"))

        assert await store._connections.read.run(work) == 7

    async def test_eight_handles_settle_and_claim_the_same_jobs(self, store: PostgresStore) -> None:
        """Settlements in different orders, and claims at the same time: each job ends once, without an
        error."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(400, now - HOUR))
        claimed = await claim(store, request(node, room=200))
        decisions = [
            success(row, now) if row.id.int % 3 else ended(row, State.DEAD, Ending.FAILED, now)
            for row in claimed
        ]
        handles = [store.clone() for _ in range(8)]
        orders = [decisions[::-1] if number % 2 else decisions for number in range(4)]
        settled = asyncio.gather(
            *(settle(handle, order) for handle, order in zip(handles[:4], orders, strict=True))
        )
        taken = await asyncio.gather(*(claim(handle, request(node, room=80)) for handle in handles[4:]))
        assert await settled == [[]] * 4
        assert len({row.id for rows in taken for row in rows}) == sum(map(len, taken)) == 200
        past = await store.list_jobs(
            JobFilter(TENANT, states=frozenset({State.SUCCEEDED, State.DEAD})), 1_000
        )
        assert sorted(row.id for row in past) == sorted(row.id for row in claimed)
        await asyncio.gather(*(handle.close() for handle in handles))


class TestSecrets:
    async def test_errors_do_not_show_the_password(
        self, postgres_server: PostgresServer, proxy: Proxy
    ) -> None:
        await proxy.refuse()
        refused = PostgresStore.from_url(f"postgresql://postgres:hunter2@127.0.0.1:{proxy.port}/{NAME}")
        missing = PostgresStore.from_url(
            f"postgresql://postgres:hunter2@127.0.0.1:{postgres_server.port}/no_such_database"
        )
        for store, kind in ((refused, StoreUnavailable), (missing, ConfigError)):
            with pytest.raises(kind) as caught:
                await store.open()
            shown: BaseException | None = caught.value
            while shown is not None:
                assert "hunter2" not in f"{shown!s} {shown!r}"
                shown = shown.__cause__ or shown.__context__
            assert "hunter2" not in repr(store)
            await store.close()

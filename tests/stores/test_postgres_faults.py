"""What the PostgreSQL store does when the server, the network or another process does not do its part."""

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
from duetime.model.attempt import Ending
from duetime.model.hint import EventHint, Hint, JobHint
from duetime.model.instant import SECOND
from duetime.model.job import JobFilter, State
from duetime.model.schedule import ScheduleFilter
from duetime.store import Migration
from duetime.stores.postgres import PostgresStore, upkeep
from duetime.testing.conformance.drafts import (
    HOUR,
    TENANT,
    add,
    claim_one,
    ended,
    firing,
    job,
    jobs,
    joined,
    put,
    request,
    schedule,
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


def terminate(url: str, line: str) -> int:
    """End the server's side of this line; answers how many sessions that were."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [f"duetime {line}"]
        )
        return len(ended.fetchall())


async def until_lines(url: str, expected: set[str]) -> None:
    """Until these are our sessions in this database: the server takes a moment to forget one."""
    query = "SELECT application_name FROM pg_stat_activity WHERE datname = %s AND application_name LIKE 'duetime %%'"
    with psycopg.connect(url, autocommit=True) as connection:

        async def found() -> bool:
            return {name.removeprefix("duetime ") for (name,) in connection.execute(query, [NAME])} == expected

        await until(found)


async def until(condition: Callable[[], Awaitable[Any]], seconds: float = 60.0) -> Any:
    async with asyncio.timeout(seconds):
        while not (found := await condition()):
            await asyncio.sleep(0)
        return found


class TestMigrating:
    async def test_many_at_once(self, postgres_url: str) -> None:
        """J2: one does it, the others find it done."""
        stores = [PostgresStore.from_url(postgres_url) for _ in range(8)]
        migrations = await asyncio.gather(*(store.migrate() for store in stores))
        assert {migration.after for migration in migrations} == {len(upkeep.MIGRATIONS)}
        await stores[0].open()
        await add(stores[0], job(0))
        assert await stores[0].migrate() == Migration(len(upkeep.MIGRATIONS), len(upkeep.MIGRATIONS))
        await asyncio.gather(*(store.close() for store in stores))

    async def test_without_a_schema_nothing_is_opened(self, postgres_url: str) -> None:
        store = PostgresStore.from_url(postgres_url)
        with pytest.raises(SchemaMissing, match="duetime migrate"):
            await store.open()
        with pytest.raises(SchemaMissing, match="duetime migrate"):
            await store.count_jobs()
        await store.close()

    async def test_a_newer_schema_is_refused(self, postgres_url: str) -> None:
        """J4."""
        store = PostgresStore.from_url(postgres_url)
        await store.migrate()
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("INSERT INTO duetime.schema_version VALUES (1000, now())")
        for verb in (store.open, store.migrate):
            with pytest.raises(SchemaTooNew, match="1000"):
                await verb()
        await store.close()

    async def test_half_a_migration_leaves_nothing(self, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """J2."""
        store = PostgresStore.from_url(postgres_url)
        with monkeypatch.context() as broken:
            broken.setattr(upkeep, "MIGRATIONS", ["CREATE TABLE duetime.half (id bigint); SELECT 1 / 0"])
            with pytest.raises(StoreError, match="division by zero"):
                await store.migrate()
        with psycopg.connect(postgres_url) as connection:
            assert connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'duetime'").fetchone() == (0,)
        assert (await store.migrate()).before == 0
        await store.close()


class TestConnections:
    async def test_only_what_is_used_is_opened(self, store: PostgresStore, postgres_database: str) -> None:
        """A heart in its own thread holds one connection, a client that submits one more than that for its hints."""
        await until_lines(postgres_database, {"submit"})
        heart = store.twin()
        await heart.open()
        node = await joined(heart)
        await heart.beat(node, HOUR)
        await until_lines(postgres_database, {"submit", "heart"})
        await store.add_jobs(jobs(10, 0))
        await heart.close()
        await until_lines(postgres_database, {"submit", "listen"})

    async def test_a_store_may_be_opened_again(self, store: PostgresStore) -> None:
        await store.time()
        await store.close()
        with pytest.raises(NotOpen, match="open"):
            await store.time()
        await store.open()
        assert await store.time() > 0


class TestLostConnections:
    async def test_a_terminated_session_is_replaced(self, store: PostgresStore, postgres_database: str) -> None:
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now)

        verbs: dict[str, Callable[[], Awaitable[object]]] = {
            "submit": lambda: add(store, job(now)),
            "claim": lambda: store.next_due(request(node)),
            "sweep": lambda: store.bury(node),
            "settle": lambda: store.settle([success(taken, now)]),
            "plan": lambda: store.fire([firing(made, now + HOUR, now)]),
            "read": store.time,
            "heart": lambda: store.beat(node, HOUR),
            "listen": lambda: store.hint([JobHint("queue", 5, now)]),
        }
        taken = await started(store, node, job(now))
        for line, verb in verbs.items():
            await verb()
            assert terminate(postgres_database, line) == 1, line
            await verb()
        assert (await stored(store, taken.id)).state is State.SUCCEEDED

    async def test_listening_survives(self, store: PostgresStore, postgres_database: str) -> None:
        """F1, F2: the session comes back, listens again, and says that everything should be looked at."""
        heard: asyncio.Queue[Hint] = asyncio.Queue()
        store.subscribe(heard.put_nowait)
        async with asyncio.timeout(60):
            assert [await heard.get(), await heard.get()] == [JobHint("*", 0, 0), EventHint(0)]
            assert terminate(postgres_database, "listen") == 1
            assert [await heard.get(), await heard.get()] == [JobHint("*", 0, 0), EventHint(0)]
            other = store.twin()
            await other.hint([JobHint("a queue", 7, 12)])
            assert await heard.get() == JobHint("a queue", 7, 12)
            await other.close()

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    @pytest.mark.parametrize("number", [1, 3, 300])
    async def test_add_jobs_cut_off(self, far: PostgresStore, proxy: Proxy, cut: Cut, number: int) -> None:
        """A2, C3, I15: whether or not it was committed, the repetition leaves each job once."""
        now = await far.time()
        await far.add_jobs(jobs(number, now - HOUR))
        drafts = [*jobs(number - 1, now), job(now, payload=b"MARKER")]
        cut(proxy, b"MARKER")
        assert await far.add_jobs(drafts) == [draft.id for draft in drafts]
        assert proxy.dropped.is_set()
        [count] = await far.count_jobs()
        assert count.pending == 2 * number

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    @pytest.mark.parametrize("with_failures", [False, True])
    async def test_settle_cut_off(self, far: PostgresStore, proxy: Proxy, cut: Cut, with_failures: bool) -> None:
        """C3, I3: nothing is refused, nothing is written twice."""
        node, now = await joined(far), await far.time()
        await far.add_jobs(jobs(10, now - HOUR))
        claimed = await far.claim(request(node))
        decisions = [success(row, now, result=b"MARKER") for row in claimed]
        if with_failures:
            decisions[3] = ended(claimed[3], State.PENDING, Ending.FAILED, now, due_at=now + HOUR, failures=1, error="boom")
            decisions[4] = ended(claimed[4], State.DEAD, Ending.FAILED, now, error="boom")
        cut(proxy, b"MARKER")
        assert await far.settle(decisions) == []
        assert proxy.dropped.is_set()
        found = await far.list_jobs(JobFilter(TENANT), 100)
        assert sorted(row.id for row in found) == sorted(row.id for row in claimed)
        assert {row.id: row.state for row in found} == {decision.id: decision.state for decision in decisions}
        assert [len(await far.list_attempts(row.id)) for row in claimed[3:5]] == [int(with_failures)] * 2

    async def test_a_claim_cut_off(self, far: PostgresStore, proxy: Proxy) -> None:
        """The one verb that is not repeated: the worker must learn that it holds something."""
        node, now = await joined(far), await far.time()
        await far.claim(request(node))
        draft = await add(far, job(now, target="MARKER"))
        proxy.drop_after(b"MARKER")
        with pytest.raises(StoreUnavailable):
            await far.claim(request(node, targets=("MARKER",)))
        assert [(row.id, row.attempt) for row in await far.held(node)] == [(draft.id, 1)]

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_fire_cut_off(self, far: PostgresStore, proxy: Proxy, cut: Cut) -> None:
        """A4, C3: the cursor moved and the jobs are there, once."""
        now = await far.time()
        made = [await put(far, schedule(f"schedule {number}"), now) for number in range(5)]
        cut(proxy, made[2].id.bytes)
        await far.fire([firing(each, now + HOUR, now) for each in made])
        assert proxy.dropped.is_set()
        assert len(await far.list_jobs(JobFilter(TENANT), 100)) == 5
        cursors = [(found.next_fire_time, found.runs) for found in await far.list_schedules(ScheduleFilter(TENANT), 10)]
        assert cursors == [(now + HOUR, 1)] * 5

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_creating_a_schedule_cut_off(self, far: PostgresStore, proxy: Proxy, cut: Cut) -> None:
        await put(far, schedule("first"), 1)
        cut(proxy, b"MARKER")
        made = await far.put_schedule(schedule(payload=b"MARKER"), 1, 0)
        assert proxy.dropped.is_set()
        assert made == await far.get_schedule(TENANT, "schedule")
        assert made is not None

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_creating_schedules_together_cut_off(self, far: PostgresStore, proxy: Proxy, cut: Cut) -> None:
        """C3: who made it is told so by the second try, and who came too late is not."""
        await put(far, schedule("taken"), 1)
        cut(proxy, b"MARKER")
        drafts = [schedule(name, payload=b"MARKER") for name in ("first", "taken", "second")]
        made = await asyncio.gather(*(far.put_schedule(draft, 1, 0) for draft in drafts))
        assert proxy.dropped.is_set()
        assert [None if one is None else one.id for one in made] == [drafts[0].id, None, drafts[2].id]

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_editing_and_removing_a_schedule_cut_off(self, far: PostgresStore, proxy: Proxy, cut: Cut) -> None:
        first = await put(far, schedule(), 1)
        cut(proxy, b"COMMIT")
        edited = await far.put_schedule(schedule(payload=b"second"), 2, first.version)
        assert proxy.dropped.is_set()
        assert edited == await far.get_schedule(TENANT, "schedule")
        assert edited is not None
        cut(proxy, b"COMMIT")
        assert await far.remove_schedule(TENANT, "schedule") == edited
        assert proxy.dropped.is_set()
        assert await far.get_schedule(TENANT, "schedule") is None

    @pytest.mark.parametrize("cut", [BEFORE, AFTER], ids=["before", "after"])
    async def test_taking_a_record_cut_off(self, far: PostgresStore, proxy: Proxy, cut: Cut) -> None:
        """C3: whoever cannot tell whether it was the first must not be told that another was."""
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
    async def test_a_crash_of_the_server(self) -> None:
        """C1: the store says so at once, and goes on when the server is back, with all it had accepted."""
        with PostgresServer(durable=True) as server:
            store = PostgresStore.from_url(server.url())
            await store.migrate()
            await store.open()
            node, now = await joined(store), await store.time()
            draft = await add(store, job(now))
            server.crash()
            for verb in (lambda: add(store, job(now)), lambda: store.claim(request(node)), store.time, lambda: store.beat(node, HOUR)):
                with pytest.raises(StoreUnavailable):
                    await asyncio.wait_for(verb(), 60)
            server.start()
            assert (await claim_one(store, node)).id == draft.id
            await store.close()

    @pytest.mark.slow
    async def test_a_network_that_swallows_everything(self, far: PostgresStore, proxy: Proxy) -> None:
        """C12: noticed after five seconds, and those who waited behind do not wait for their own turn, which would make it 25."""
        await far.time()
        await proxy.blackhole()
        began = monotonic_micros()
        outcomes = await asyncio.gather(*(far.time() for _ in range(5)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 5
        assert monotonic_micros() - began < 20 * SECOND
        await proxy.pass_through()
        assert await far.time() > 0

    async def test_refused_connections(self, far: PostgresStore, proxy: Proxy) -> None:
        await proxy.refuse()
        with pytest.raises(StoreUnavailable, match="safe to repeat"):
            await far.time()
        await proxy.pass_through()
        assert await far.time() > 0

    async def test_a_table_that_somebody_locks(self, store: PostgresStore, postgres_database: str) -> None:
        """C11: bounded by the server; the other lines go on."""
        with psycopg.connect(postgres_database) as connection:
            connection.execute("LOCK TABLE duetime.schedules")
            waiting = asyncio.create_task(store.put_schedule(schedule(), 1, 0))
            await store.count_jobs()
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                await waiting
        assert await store.put_schedule(schedule(), 1, 0) is not None

    async def test_a_read_only_server_is_an_outage(self, store: PostgresStore, postgres_database: str) -> None:
        """C14."""
        fresh = store.twin()  # the setting is for sessions to come
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

    async def test_the_answer_and_the_deadline_meet_after_the_loop_stood_still(self, store: PostgresStore) -> None:
        """A task that blocks: what the driver makes of a connection that is closed between two of its steps is no bug of a statement."""
        line = store._lines.read
        await line.value("SELECT 1")
        asked = asyncio.create_task(line.run(lambda connection: connection.fetchval("SELECT 4711 + $1::bigint", 1), patience=0.2))
        await asyncio.sleep(0)  # it is on its way
        time.sleep(0.5)  # a task blocks
        with pytest.raises(StoreUnavailable, match="no answer in time"):
            await asked
        assert await line.value("SELECT 4711") == 4711


class TestQuarrels:
    async def test_a_deadlock_is_repeated(self, store: PostgresStore) -> None:
        """C5, C6."""
        tries = iter([asyncpg.DeadlockDetectedError("deadlock"), asyncpg.SerializationError("serialization"), None])

        async def work(connection: Any) -> int:
            if (problem := next(tries)) is not None:
                raise problem
            return int(await connection.fetchval("SELECT 7"))

        assert await store._lines.read.run(work) == 7

    async def test_eight_handles_on_the_same_jobs(self, store: PostgresStore) -> None:
        """C5, C7, I3: late settlers in every order, and claimers beside them; each job ends once and nobody sees an error."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(400, now - HOUR))
        claimed = await store.claim(request(node, room=200))
        decisions = [success(row, now) if row.id.int % 3 else ended(row, State.DEAD, Ending.FAILED, now) for row in claimed]
        handles = [store.twin() for _ in range(8)]
        orders = [decisions[::-1] if number % 2 else decisions for number in range(4)]
        settled = asyncio.gather(*(handle.settle(order) for handle, order in zip(handles[:4], orders, strict=True)))
        taken = await asyncio.gather(*(handle.claim(request(node, room=80)) for handle in handles[4:]))
        assert await settled == [[]] * 4
        assert len({row.id for rows in taken for row in rows}) == sum(map(len, taken)) == 200
        past = await store.list_jobs(JobFilter(TENANT, states=frozenset({State.SUCCEEDED, State.DEAD})), 1_000)
        assert sorted(row.id for row in past) == sorted(row.id for row in claimed)
        await asyncio.gather(*(handle.close() for handle in handles))


class TestSecrets:
    async def test_no_error_shows_the_password(self, postgres_server: PostgresServer, proxy: Proxy) -> None:
        """S38."""
        await proxy.refuse()
        refused = PostgresStore.from_url(f"postgresql://postgres:hunter2@127.0.0.1:{proxy.port}/{NAME}")
        missing = PostgresStore.from_url(f"postgresql://postgres:hunter2@127.0.0.1:{postgres_server.port}/no_such_database")
        for store, kind in ((refused, StoreUnavailable), (missing, ConfigError)):
            with pytest.raises(kind) as caught:
                await store.open()
            shown: BaseException | None = caught.value
            while shown is not None:
                assert "hunter2" not in f"{shown!s} {shown!r}"
                shown = shown.__cause__ or shown.__context__
            assert "hunter2" not in repr(store)
            await store.close()

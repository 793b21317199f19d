"""Gates, limited queues and what else the second schema brought: the parts that are PostgreSQL's own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from duetime.model.hint import DoneHint, Hint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, JobFilter, State
from duetime.model.limit import Queue, Rate
from duetime.model.unique import LIVE, Admission, OnConflict, Rule
from duetime.store import Lane, MarkReply, Note
from duetime.stores.postgres import PostgresStore, upkeep
from duetime.stores.postgres.notes import merged
from duetime.stores.postgres.turns import in_order
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    PRIORITY,
    QUEUE,
    TARGET,
    TENANT,
    add,
    bound,
    claim_one,
    job,
    jobs,
    joined,
    new_id,
    request,
    schedule,
    started,
    stored,
    success,
)
from tests.servers.proxy import Proxy

ONE = (bound(most=1),)
Cut = Callable[[Proxy, bytes], None]
CUTS = {"before": lambda proxy, marker: proxy.drop_before(marker), "after": lambda proxy, marker: proxy.drop_after(marker)}


def ask(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement).fetchall()


async def waits(url: str, line: str) -> None:
    """Until this line of ours waits for a lock."""
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'duetime {line}' AND wait_event_type = 'Lock'"
    async with asyncio.timeout(60):
        while ask(url, query) == [(0,)]:
            await asyncio.sleep(0)


class TestMigrating:
    async def test_what_the_first_schema_holds_is_kept(self, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """J1: jobs, history and schedules of the version before, claimed and listed by this one."""
        store = PostgresStore.from_url(postgres_url)
        with monkeypatch.context() as past:
            past.setattr(upkeep, "MIGRATIONS", upkeep.MIGRATIONS[:1])
            assert (await store.migrate()).after == 1
        waiting, done = new_id(1), new_id(2)
        columns = "(id, tenant, fire_time, due_at, queue, priority, target, payload"
        values = f"'{TENANT}', now(), now(), '{QUEUE}', {PRIORITY}, '{TARGET}', '{{}}'"
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"INSERT INTO duetime.jobs {columns}) VALUES ('{waiting}', {values})")
            connection.execute(f"INSERT INTO duetime.history {columns}, state, finished_at) VALUES ('{done}', {values}, 'dead', now())")
            connection.execute(f"INSERT INTO duetime.queues VALUES ('{QUEUE}')")
        migration = await store.migrate()
        assert (migration.before, migration.after) == (1, len(upkeep.MIGRATIONS))
        await store.open()
        assert await store.queues() == [Queue(QUEUE)]
        node = await joined(store)
        assert (await claim_one(store, node)).id == waiting
        found = await stored(store, done)
        assert (found.state, found.gate) == (State.DEAD, None)
        await store.put_schedule(schedule(gate="a"), 1, 0)
        await store.close()


class TestRates:
    async def test_the_server_counts_as_the_model_does(self, store: PostgresStore) -> None:
        """The same arithmetic, to the microsecond, in two languages."""
        now = 1_800_000_000 * SECOND
        rates = [Rate(count, period) for count in (1, 2, 3, 7, 1_000_000) for period in (1, 10, 999_999, SECOND, HOUR)]
        offsets = (-HOUR, -1, 0, 1, SECOND // 3, SECOND, HOUR - 1, HOUR, 2 * HOUR)
        cases = [(rate, now + offset) for rate in rates for offset in offsets]
        counted = await store._lines.read.fetch(
            "SELECT duetime.starts_allowed(c, p, s, $4) AS n FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS x(c, p, s)",
            [rate.count for rate, _ in cases],
            [rate.period for rate, _ in cases],
            [spent for _, spent in cases],
            now,
        )
        assert [row["n"] for row in counted] == [rate.allowed(spent, now) for rate, spent in cases]

    async def test_what_is_spent_is_what_the_model_says(self, store: PostgresStore, postgres_database: str) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(7, now - DAY, gate="a"))
        before = await store.time()
        assert len(await store.claim(request(node, bounds=(bound(rate=Rate(3, HOUR)),)))) == 3
        after = await store.time()
        [(spent,)] = ask(postgres_database, "SELECT spent_until FROM duetime.gates")
        assert Rate(3, HOUR).spend(0, before, 3) <= spent <= Rate(3, HOUR).spend(0, after, 3)

    async def test_a_changed_rate_of_a_queue_begins_anew(self, store: PostgresStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY))
        await store.set_queue(Queue(QUEUE, rate=Rate(2, DAY)))
        assert len(await store.claim(request(node))) == 2
        await store.set_queue(Queue(QUEUE, True, "a note", rate=Rate(2, DAY)))
        await store.set_queue(Queue(QUEUE, rate=Rate(2, DAY)))
        assert await store.claim(request(node)) == []
        await store.set_queue(Queue(QUEUE, rate=Rate(3, DAY)))
        assert len(await store.claim(request(node))) == 3


class TestLocks:
    async def test_what_somebody_else_counts_is_waited_for(self, store: PostgresStore, postgres_database: str) -> None:
        """Whoever is at the gate may have counted before its last job ended: then nobody else would come for what it leaves."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2, now - DAY, gate="a"))
        held = await claim_one(store, node, bounds=ONE)
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM duetime.gates WHERE name = 'a' FOR UPDATE")
            assert await store.claim(request(node, bounds=ONE)) == [], "a full gate is none to wait for"
            assert await store.settle([success(held, now)]) == []
            claim = asyncio.create_task(store.claim(request(node, bounds=ONE)))
            await waits(postgres_database, "claim")
        assert len(await claim) == 1

    async def test_but_not_for_long(self, store: PostgresStore, postgres_database: str) -> None:
        """C11: somebody who sits on a gate costs its jobs their turn, and nothing else."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2, now - DAY, gate="a"))
        held = await claim_one(store, node, bounds=ONE)
        assert await store.settle([success(held, now)]) == []
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM duetime.gates WHERE name = 'a' FOR UPDATE")
            assert await store.claim(request(node, bounds=ONE)) == []
        assert len(await store.claim(request(node, bounds=ONE))) == 1

    async def test_a_queue_that_somebody_else_counts_is_waited_for(self, store: PostgresStore, postgres_database: str) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, most=1))
        await store.add_jobs(jobs(2, now - DAY))
        held = await claim_one(store, node)
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM duetime.queues FOR UPDATE")
            claim = asyncio.create_task(store.claim(request(node)))
            await waits(postgres_database, "claim")
            assert await store.settle([success(held, now)]) == []
        assert len(await claim) == 1

    async def test_while_others_are_at_one_gate_the_rest_goes_on(self, store: PostgresStore, postgres_database: str) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(5, now - DAY, gate="a"), *jobs(5, now - HOUR, gate="b"), *jobs(5, now - HOUR)])
        assert len(await store.claim(request(node, bounds=ONE, room=1))) == 1
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM duetime.gates WHERE name = 'a' FOR UPDATE")
            claimed = await store.claim(request(node, bounds=ONE))
        assert None in {row.gate for row in claimed}
        assert "a" not in {row.gate for row in claimed}

    async def test_many_at_new_gates_do_not_wait_in_a_circle(self, store: PostgresStore, postgres_database: str) -> None:
        """C5, C7: eight claimers make and lock the same hundred gates, from both ends of the lanes."""
        query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        before = ask(postgres_database, query)
        node, now = await joined(store), await store.time()
        lanes = [Lane(QUEUE, priority, 0) for priority in (9, 5, 1)]
        for lane in lanes:
            await store.add_jobs([job(now - DAY + at, gate=f"{at % 100}", priority=lane.priority) for at in range(300)])
        await store.set_queue(Queue(QUEUE, most=150))
        handles = [store.twin() for _ in range(8)]
        orders = [lanes, lanes[::-1]] * 4

        async def work(handle: PostgresStore, order: list[Lane]) -> list[str | None]:
            taken = []
            for _ in range(4):
                taken += [row.gate for row in await handle.claim(request(node, *order, room=11, bounds=(bound(most=2),)))]
            return taken

        answers = await asyncio.gather(*(work(handle, order) for handle, order in zip(handles, orders, strict=True)))
        counts = Counter(gate for taken in answers for gate in taken)
        assert max(counts.values()) <= 2
        assert sum(counts.values()) <= 150
        await asyncio.gather(*(handle.close() for handle in handles))
        assert ask(postgres_database, query) == before


class TestWalking:
    async def test_one_claim_finds_the_free_gate_among_many(self, store: PostgresStore, postgres_database: str) -> None:
        """Further than one walk goes: the claim walks on until it has come round."""
        node, now = await joined(store), await store.time()
        full = [f"{number:04}" for number in range(1_300)]
        await store.add_jobs([job(now - DAY + at, gate=gate) for at, gate in enumerate(full * 2)])
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute(
                "UPDATE duetime.jobs SET state = 'running', node = %s WHERE id IN "
                "(SELECT DISTINCT ON (gate) id FROM duetime.jobs ORDER BY gate, due_at)",
                [node],
            )
        for gate in ("zebra", "0700a", "!"):
            await add(store, job(now, gate=gate))
            assert [row.gate for row in await store.claim(request(node, bounds=ONE))] == [gate]
        assert await store.claim(request(node, bounds=ONE)) == []

    async def test_gates_nobody_here_can_serve_are_in_nobodys_way(self, store: PostgresStore) -> None:
        node, now = await joined(store), await store.time()
        others = [job(now - DAY + at, gate=f"{at:04}", target=f"other {at % 3}") for at in range(2_000)]
        await store.add_jobs([*others, job(now - 1, gate="mine"), job(now - 1)])
        claimed = await store.claim(request(node, bounds=ONE))
        assert {row.gate for row in claimed} == {"mine", None}

    async def test_the_short_way_is_taken_again_when_the_gates_are_gone(self, store: PostgresStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(3, now - DAY), *jobs(3, now - DAY, gate="a")])
        assert len(await store.claim(request(node))) == 6
        assert store._work._turns[False].wanted
        await store.claim(request(node))
        assert not store._work._turns[False].wanted
        await store.add_jobs(jobs(3, now - DAY))
        assert len(await store.claim(request(node))) == 3

    def test_jobs_come_in_turns(self) -> None:
        rows = [claimed(gate, due) for gate, due in (("b", 9), ("a", 1), ("a", 2), (None, 8), ("a", 3), (None, 4))]
        rows += [claimed("a", 0, priority=1)]
        lanes = (Lane(QUEUE, PRIORITY, 0), Lane(QUEUE, 1, 0))
        ordered = in_order(request(0, *lanes), rows)  # type: ignore[arg-type]  # a node id is a number
        assert [(row.gate, row.due_at) for row in ordered] == [("a", 1), (None, 4), ("b", 9), ("a", 2), (None, 8), ("a", 3), ("a", 0)]


def claimed(gate: str | None, due_at: int, priority: int = PRIORITY) -> Claimed:
    return Claimed(
        new_id(0), 1, TARGET, b"", due_at, QUEUE, priority, 0, 0, 0, False, None, None, None, None, None, None, TENANT, False, gate
    )


class TestUpkeep:
    async def test_gates_are_forgotten_when_nothing_is_spent(self, store: PostgresStore, postgres_database: str) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY, gate="spent"), job(now - DAY, gate="idle", target="other"), job(now - DAY, gate="full")])
        bounds = (bound(most=5, target="other"), bound(rate=Rate(1, DAY)))
        assert len(await store.claim(request(node, targets=(TARGET, "other"), bounds=bounds))) == 3
        await store.prune(now - DAY)
        assert ask(postgres_database, "SELECT name FROM duetime.gates ORDER BY name") == [("full",), ("spent",)]
        await store.add_jobs(jobs(9, now - DAY, gate="idle", target="other"))
        assert len(await store.claim(request(node, targets=("other",), bounds=bounds))) == 4

    async def test_marks_go_with_the_day_of_their_job(self, store: PostgresStore, postgres_database: str) -> None:
        node, now = await joined(store), await store.time()
        done, running = await started(store, node, job(now)), await started(store, node, job(now))
        for row in (done, running):
            assert await store.mark(row.id, 1, "mail", new_id(1)) is MarkReply.TAKEN
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute("DELETE FROM duetime.jobs WHERE id = %s", [done.id])  # as if its day had been dropped
            connection.execute("UPDATE duetime.marks SET made_at = now() - interval '9 days'")
        await store.prune(now - 5 * DAY)
        assert ask(postgres_database, "SELECT job_id FROM duetime.marks") == [(running.id,)]


class TestLostReplies:
    @pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
    async def test_mark(self, far: PostgresStore, proxy: Proxy, cut: Cut) -> None:
        """C3: the answer is the same, whether the first try was committed or not."""
        node = await joined(far)
        row = await started(far, node, job(await far.time()))
        assert await far.mark(row.id, 1, "warm", new_id(1)) is MarkReply.TAKEN
        cut(proxy, b"MARKER")
        assert await far.mark(row.id, 1, "MARKER", new_id(1)) is MarkReply.TAKEN
        assert proxy.dropped.is_set()
        assert await far.mark(row.id, 1, "MARKER", new_id(1)) is MarkReply.KNOWN

    @pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
    async def test_save(self, far: PostgresStore, proxy: Proxy, cut: Cut) -> None:
        node = await joined(far)
        row = await started(far, node, job(await far.time()))
        assert await far.save([Note(row.id, 1, b"warm", None)]) == []
        cut(proxy, b"MARKER")
        assert await far.save([Note(row.id, 1, b"MARKER", None)]) == []
        assert proxy.dropped.is_set()
        assert (await stored(far, row.id)).checkpoint == b"MARKER"

    @pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
    @pytest.mark.parametrize("states", [LIVE, frozenset(State)], ids=["live", "ever"])
    async def test_add_unique(self, far: PostgresStore, proxy: Proxy, cut: Cut, states: frozenset[State]) -> None:
        """A2, C3, I15."""
        now = await far.time()
        rule = Rule(states, None, OnConflict.REPLACE)
        assert await far.add_unique(first := job(now, unique_key="key"), rule) == Admission(first.id)
        cut(proxy, b"COMMIT")
        assert await far.add_unique(second := job(now, unique_key="key"), rule) == Admission(second.id, "replaced")
        assert proxy.dropped.is_set()
        cut(proxy, b"MARKER" if states == LIVE else b"COMMIT")
        fresh = job(now, unique_key="another", payload=b"MARKER")
        assert await far.add_unique(fresh, rule) == Admission(fresh.id)
        found = await far.list_jobs(JobFilter(TENANT), 10)
        assert {row.id: row.state for row in found} == {
            first.id: State.CANCELLED,
            second.id: State.PENDING,
            fresh.id: State.PENDING,
        }

    async def test_a_claim_in_turns(self, far: PostgresStore, proxy: Proxy) -> None:
        """Not repeated: the worker asks what it holds."""
        node, now = await joined(far), await far.time()
        await far.add_jobs([job(now, target="MARKER", gate="a")])
        with pytest.raises(Exception, match="cannot be reached"):
            await cut_claim(far, proxy, node)
        assert [(row.target, row.attempt, row.gate) for row in await far.held(node)] == [("MARKER", 1, "a")]


async def cut_claim(far: PostgresStore, proxy: Proxy, node: Any) -> None:
    far._work._turns[False].wanted = True
    await far.claim(request(node, targets=("none",)))
    far._work._turns[False].wanted = True
    proxy.drop_after(b"MARKER")
    await far.claim(request(node, targets=("MARKER",)))


class TestWaiting:
    async def test_of_many_that_end_together_those_waited_for_are_told(self, store: PostgresStore) -> None:
        node, now = await joined(store), await store.time()
        heard: list[Hint] = []
        store.subscribe(heard.append)
        await store.add_jobs(jobs(200, now - DAY))
        rows = await store.claim(request(node, room=200))
        watched = rows[::50]
        for row in watched:
            assert await store.await_job(row.id)
        assert await store.settle([success(row, now) for row in rows]) == []
        async with asyncio.timeout(60):
            while not {DoneHint(row.id) for row in watched} <= set(heard):
                await asyncio.sleep(0)
        assert len([hint for hint in heard if isinstance(hint, DoneHint)]) == len(watched)

    async def test_waiting_for_a_job_that_ends_in_this_moment(self, store: PostgresStore, postgres_database: str) -> None:
        """Either it is announced, or it is known to be no live job any more."""
        node, now = await joined(store), await store.time()
        row = await started(store, node, job(now))
        with psycopg.connect(postgres_database) as other:
            other.execute("DELETE FROM duetime.jobs WHERE id = %s", [row.id])
            waiting = asyncio.create_task(store.await_job(row.id))
            await waits(postgres_database, "submit")
        assert not await waiting


class TestNotes:
    def test_the_last_word_on_each_part(self) -> None:
        first, second = new_id(0), new_id(0)
        notes = [Note(first, 1, b"1", None), Note(second, 1, None, b"x"), Note(first, 1, None, b"a"), Note(first, 2, b"2", None)]
        assert merged(notes) == [Note(first, 1, b"1", b"a"), Note(second, 1, None, b"x"), Note(first, 2, b"2", None)]

"""Limits, announcements and progress on PostgreSQL: locks, lost replies, retention."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from duetime.clock import monotonic_micros
from duetime.errors import StoreUnavailable
from duetime.model.hint import DoneHint, Hint
from duetime.model.job import JobFilter, State
from duetime.model.lease import NodeId
from duetime.model.limit import Queue, Rate
from duetime.model.unique import LIVE, Admission, OnConflict, Rule
from duetime.store import AttemptUpdate, Lane, OfNode, OnceReply, Successors
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.checkpoints import merged
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    QUEUE,
    TARGET,
    TENANT,
    add,
    announce,
    claim,
    claim_one,
    job,
    jobs,
    joined,
    limit,
    new_id,
    request,
    set_limits,
    settle,
    started,
    stored,
    success,
)
from tests.servers.proxy import Proxy

ONE = (limit(1),)
Cut = Callable[[Proxy, bytes], None]
CUTS = {
    "before": lambda proxy, marker: proxy.drop_before(marker),
    "after": lambda proxy, marker: proxy.drop_after(marker),
}


def query(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement).fetchall()


async def until_waiting(url: str, connection_name: str) -> None:
    """Until this connection of the store waits for a lock."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        f"WHERE application_name = 'duetime {connection_name}' AND wait_event_type = 'Lock'"
    )
    async with asyncio.timeout(60):
        while query(url, waiting) == [(0,)]:
            await asyncio.sleep(0)


def successors(node: NodeId) -> Successors:
    return Successors(node, 100, (QUEUE,), (TARGET,))


class TestRates:
    async def test_spent_time_is_that_of_the_model(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(7, now - DAY, limit_key="a"))
        before = await store.time()
        assert len(await claim(store, request(node), (limit(rate=Rate(3, HOUR)),))) == 3
        after = await store.time()
        [(spent,)] = query(postgres_database, "SELECT spent_until FROM duetime.limit_keys")
        assert Rate(3, HOUR).spend(0, before, 3) <= spent <= Rate(3, HOUR).spend(0, after, 3)

    async def test_changed_rate_of_a_queue_begins_with_nothing_spent(self, store: PostgresStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY))
        await store.set_queue(Queue(QUEUE, rate=Rate(2, DAY)))
        assert len(await claim(store, request(node))) == 2
        await store.set_queue(Queue(QUEUE, True, "a note", rate=Rate(2, DAY)))
        await store.set_queue(Queue(QUEUE, rate=Rate(2, DAY)))
        assert await claim(store, request(node)) == []
        await store.set_queue(Queue(QUEUE, rate=Rate(3, DAY)))
        assert len(await claim(store, request(node))) == 3


class TestLocks:
    async def test_claim_waits_for_another_claim_of_the_key(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """The other claim may have counted a job that has ended since."""
        node, now = await joined(store), await store.time()
        await set_limits(store, *ONE)
        held = await started(store, node, job(now - DAY, limit_key="a"))
        await add(store, job(now - DAY, limit_key="a"))
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM duetime.limit_keys WHERE name = 'a' FOR UPDATE")
            claiming = asyncio.create_task(claim(store, request(node)))
            await until_waiting(postgres_database, "claim")
            other.execute(
                "UPDATE duetime.jobs SET state = 'pending', due_at = now() + interval '1 day' WHERE id = %s",
                [held.id],
            )
        assert len(await claiming) == 1

    async def test_job_to_cancel_whose_row_is_locked_is_cancelled_later(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """A caller who begins to wait for it locks its row, too."""
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        one = {"schedule_id": schedule_id, "schedule": "s", "overlap": "cancel_previous"}
        first = await started(store, node, job(now - DAY, **one))
        await add(store, job(now - HOUR, **one))
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM duetime.jobs WHERE id = %s FOR UPDATE", [first.id])
            assert await claim(store, request(node)) == []
        assert await claim(store, request(node)) == []
        found = await store.get_job(TENANT, first.id)
        assert found is not None
        assert found.cancel_requested

    async def test_claim_does_not_wait_long_for_another(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, *ONE)
        held = await started(store, node, job(now - DAY, limit_key="a"))
        assert await settle(store, [success(held, now)]) == []
        await add(store, job(now - DAY, limit_key="a"))
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM duetime.limit_keys WHERE name = 'a' FOR UPDATE")
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                await store.claim(request(node))
        assert len(await claim(store, request(node))) == 1

    async def test_claim_waits_for_another_claim_of_the_queue(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, max_running=1))
        await store.add_jobs(jobs(2, now - DAY))
        held = await claim_one(store, node)
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM duetime.queues FOR UPDATE")
            claiming = asyncio.create_task(claim(store, request(node)))
            await until_waiting(postgres_database, "claim")
            assert await settle(store, [success(held, now)]) == []
        assert len(await claiming) == 1

    async def test_permit_without_a_waiting_job_is_given_up_under_the_lock(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """A claim that has counted the running job makes the next one wait; the settlement sees it after the
        claim has committed."""
        node, now = await joined(store), await store.time()
        await set_limits(store, *ONE)
        held = await started(store, node, job(now - DAY, limit_key="a"))
        late = await add(store, job(now, limit_key="a"))
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM duetime.limit_keys WHERE name = 'a' FOR UPDATE")
            settling = asyncio.create_task(store.settle([success(held, now)], successors(node)))
            await until_waiting(postgres_database, "settle")
            other.execute("UPDATE duetime.jobs SET waits_for = limit_key WHERE id = %s", [late.id])
        assert [row.id for row in (await settling).successors] == [late.id]

    async def test_permit_is_given_up_under_the_lock_next_to_one_that_is_passed_on_twice(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """Several successors under one permit do not stand for the other permits of the batch."""
        node, now = await joined(store), await store.time()
        await set_limits(store, *ONE)
        one = await started(store, node, job(now - DAY, limit_key="one"))
        other = await started(store, node, job(now - DAY, limit_key="other"))
        await store.add_jobs(jobs(2, now - HOUR, limit_key="one"))
        await claim(store, request(node))  # they wait
        last = job(now - HOUR, limit_key="other")
        await add(store, last)
        with psycopg.connect(postgres_database) as claimer:
            claimer.execute("SELECT FROM duetime.limit_keys WHERE name = 'other' FOR UPDATE")
            claimer.execute("UPDATE duetime.jobs SET waits_for = 'other' WHERE id = %s", [last.id])
            both = Successors(node, 100, (QUEUE,), (TARGET,), {one.id: 2, other.id: 1})
            settling = asyncio.create_task(store.settle([success(one, now), success(other, now)], both))
            await until_waiting(postgres_database, "settle")
        assert last.id in {successor.id for successor in (await settling).successors}

    async def test_concurrent_claims_and_settlements_do_not_deadlock(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """Eight handles insert and lock the same hundred keys, with the lanes in different orders, and pass
        permits on."""
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        before = query(postgres_database, deadlocks)
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(2))
        lanes = [Lane(QUEUE, priority, 0) for priority in (9, 5, 1)]
        for lane in lanes:
            await store.add_jobs(
                [job(now - DAY + at, limit_key=f"{at % 100}", priority=lane.priority) for at in range(300)]
            )
        handles = [store.clone() for _ in range(8)]
        running: Counter[str | None] = Counter()
        done = 0

        async def work(handle: PostgresStore, order: list[Lane]) -> None:
            nonlocal done
            for _ in range(6):
                taken = (await handle.claim(request(node, *order, room=11))).jobs
                running.update(row.limit_key for row in taken)
                assert max(running.values(), default=0) <= 2
                running.subtract(row.limit_key for row in taken)
                settled = (
                    await handle.settle([success(row, now) for row in taken], successors(node))
                    if taken
                    else None
                )
                done += len(taken)
                if settled is not None and settled.successors:
                    assert await settle(handle, [success(row, now) for row in settled.successors]) == []
                    done += len(settled.successors)

        await asyncio.gather(
            *(work(handle, order) for handle, order in zip(handles, [lanes, lanes[::-1]] * 4, strict=True))
        )
        assert done > 100
        await asyncio.gather(*(handle.close() for handle in handles))
        assert query(postgres_database, deadlocks) == before


class TestPaths:
    async def test_plain_path_is_used_again_when_no_job_needs_a_permit(self, store: PostgresStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(3, now - DAY), *jobs(3, now - DAY, limit_key="a")])
        assert len(await claim(store, request(node))) == 6
        path = store._claims._paths[False]
        assert path.permits_until > monotonic_micros()
        until = path.permits_until = monotonic_micros()  # a second later
        await store.add_jobs(jobs(3, now - DAY))
        assert len(await claim(store, request(node))) == 3
        assert path.permits_until == until

    async def test_jobs_of_other_targets_are_not_in_the_way(self, store: PostgresStore) -> None:
        node, now = await joined(store), await store.time()
        others = [job(now - DAY + at, limit_key=f"{at:04}", target=f"other {at % 3}") for at in range(2_000)]
        await store.add_jobs([*others, job(now - 1, limit_key="mine"), job(now - 1)])
        claimed = await claim(store, request(node), ONE)
        assert {row.limit_key for row in claimed} == {"mine", None}

    async def test_free_key_is_found_behind_many_full_ones(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        node, now = await joined(store), await store.time()
        full = [f"{number:04}" for number in range(1_300)]
        await set_limits(store, *ONE)
        await store.add_jobs([job(now - DAY + at, limit_key=key) for at, key in enumerate(full * 2)])
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute(
                "UPDATE duetime.jobs SET state = 'running', node = %s, permit = gen_random_uuid() "
                "WHERE id IN "
                "(SELECT DISTINCT ON (limit_key) id FROM duetime.jobs ORDER BY limit_key, due_at)",
                [node],
            )
        for key in ("zebra", "0700a", "!"):
            await add(store, job(now, limit_key=key))
            assert [row.limit_key for row in await claim(store, request(node))] == [key]
        assert await claim(store, request(node)) == []


class TestRetention:
    async def test_unused_limit_keys_are_deleted(self, store: PostgresStore, postgres_database: str) -> None:
        node, now = await joined(store), await store.time()
        drafts = [
            job(now - DAY, limit_key="spent"),
            job(now - DAY, limit_key="idle", target="other"),
            job(now - DAY, limit_key="busy", target="other"),
        ]
        await store.add_jobs(drafts)
        await set_limits(store, limit(5, target="other"), limit(rate=Rate(1, DAY)))
        claimed = await claim(store, request(node, targets=(TARGET, "other")))
        assert len(claimed) == 3
        assert await settle(store, [success(row, now) for row in claimed if row.limit_key != "busy"]) == []
        await store.prune(now - DAY)
        assert query(postgres_database, "SELECT name FROM duetime.limit_keys ORDER BY name") == [
            ("busy",),
            ("spent",),
        ]
        await store.add_jobs(jobs(9, now - DAY, limit_key="idle", target="other"))
        assert len(await claim(store, request(node, targets=("other",)))) == 5

    async def test_lowered_limit_is_forgotten_when_it_holds(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(3, now - DAY, limit_key="a"))
        claimed = await claim(store, request(node), (limit(3),))
        await set_limits(store, limit(2))
        lowered = "SELECT lowered FROM duetime.limits"
        await store.prune(now - DAY)
        assert query(postgres_database, lowered) == [(True,)]
        assert await settle(store, [success(claimed[0], now)]) == []
        await store.prune(now - DAY)
        assert query(postgres_database, lowered) == [(False,)]

    async def test_once_markers_are_deleted_with_the_day_of_their_job(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        node, now = await joined(store), await store.time()
        done, running = await started(store, node, job(now)), await started(store, node, job(now))
        for row in (done, running):
            assert await store.take_once(row.id, 1, "mail", new_id(1)) is OnceReply.TAKEN
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute(
                "DELETE FROM duetime.jobs WHERE id = %s", [done.id]
            )  # as if its day had been dropped
            connection.execute("UPDATE duetime.once_markers SET taken_at = now() - interval '9 days'")
        await store.prune(now - 5 * DAY)
        assert query(postgres_database, "SELECT job_id FROM duetime.once_markers") == [(running.id,)]


class TestLostReplies:
    @pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
    async def test_take_once_is_repeated_with_the_same_reply(
        self, far: PostgresStore, proxy: Proxy, cut: Cut
    ) -> None:
        node = await joined(far)
        row = await started(far, node, job(await far.time()))
        assert await far.take_once(row.id, 1, "warm", new_id(1)) is OnceReply.TAKEN
        cut(proxy, b"MARKER")
        assert await far.take_once(row.id, 1, "MARKER", new_id(1)) is OnceReply.TAKEN
        assert proxy.dropped.is_set()
        assert await far.take_once(row.id, 1, "MARKER", new_id(1)) is OnceReply.KNOWN

    @pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
    async def test_save_progress_is_repeated(self, far: PostgresStore, proxy: Proxy, cut: Cut) -> None:
        node = await joined(far)
        row = await started(far, node, job(await far.time()))
        assert await far.save_progress([AttemptUpdate(row.id, 1, b"warm")]) == []
        cut(proxy, b"MARKER")
        assert await far.save_progress([AttemptUpdate(row.id, 1, b"MARKER")]) == []
        assert proxy.dropped.is_set()
        assert (await stored(far, row.id)).checkpoint == b"MARKER"

    @pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
    @pytest.mark.parametrize("states", [LIVE, frozenset(State)], ids=["live", "ever"])
    async def test_add_unique_is_repeated(
        self, far: PostgresStore, proxy: Proxy, cut: Cut, states: frozenset[State]
    ) -> None:
        now = await far.time()
        rule = Rule(states, None, OnConflict.REPLACE)
        assert await far.add_unique(first := job(now, unique_key="key"), rule) == Admission(first.id)
        cut(proxy, b"COMMIT")
        assert await far.add_unique(second := job(now, unique_key="key"), rule) == Admission(
            second.id, "replaced"
        )
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

    async def test_claim_with_permits_is_not_repeated(self, far: PostgresStore, proxy: Proxy) -> None:
        """The worker asks which jobs it has."""
        node, now = await joined(far), await far.time()
        await far.add_jobs([job(now, limit_key="a")])
        proxy.drop_after(b"COMMIT")
        with pytest.raises(StoreUnavailable):
            await far.claim(request(node))
        assert [(row.attempt, row.limit_key) for row in await far.running_jobs(OfNode(node), 10)] == [
            (1, "a")
        ]

    async def test_settlement_with_successors_is_not_repeated(self, far: PostgresStore, proxy: Proxy) -> None:
        node, now = await joined(far), await far.time()
        await set_limits(far, *ONE)
        first, second = job(now - 2, limit_key="a"), job(now - 1, limit_key="a")
        await far.add_jobs([first, second])
        held = await claim_one(far, node)
        far._settlements._permits_until = 1 << 62  # not first as a success without a permit
        proxy.drop_after(b"MARKER")
        with pytest.raises(StoreUnavailable):
            await far.settle([success(held, now, result=b"MARKER")], successors(node))
        assert [row.id for row in await far.running_jobs(OfNode(node), 10)] == [second.id]


class TestAnnouncements:
    async def test_awaited_jobs_among_many_settled_ones_are_announced(self, store: PostgresStore) -> None:
        node, now = await joined(store), await store.time()
        heard: list[Hint] = []
        store.subscribe(heard.append)
        await store.add_jobs(jobs(200, now - DAY))
        rows = await claim(store, request(node, room=200))
        watched = rows[::50]
        for row in watched:
            assert await announce(store, row.id)
        assert await settle(store, [success(row, now) for row in rows]) == []
        async with asyncio.timeout(60):
            while not {DoneHint(row.id) for row in watched} <= set(heard):
                await asyncio.sleep(0)
        assert len([hint for hint in heard if isinstance(hint, DoneHint)]) == len(watched)

    async def test_job_that_ends_at_the_same_time_is_known_to_be_over(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        node, now = await joined(store), await store.time()
        row = await started(store, node, job(now))
        with psycopg.connect(postgres_database) as other:
            other.execute("DELETE FROM duetime.jobs WHERE id = %s", [row.id])
            waiting = asyncio.create_task(announce(store, row.id))
            await until_waiting(postgres_database, "submit")
        assert not await waiting


def test_updates_of_an_attempt_are_merged() -> None:
    first, second = new_id(0), new_id(0)
    updates = [
        AttemptUpdate(first, 1, b"1"),
        AttemptUpdate(second, 1, progress=b"x"),
        AttemptUpdate(first, 1, progress=b"a", started=True),
        AttemptUpdate(first, 2, b"2"),
        AttemptUpdate(first, 1, deadline=7),
    ]
    assert merged(updates) == [
        AttemptUpdate(first, 1, b"1", b"a", True, 7),
        AttemptUpdate(second, 1, progress=b"x"),
        AttemptUpdate(first, 2, b"2"),
    ]

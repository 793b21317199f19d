"""Limits and queues on SQLite: the cost of claims and settlements with many waiting jobs, the hints for freed
permits, and queue limits."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from duetime.model.hint import Hint, JobHint
from duetime.model.instant import SECOND
from duetime.model.job import JobFilter, State
from duetime.model.limit import Queue, QueueCounts, Rate
from duetime.model.permits import READY_PER_KEY
from duetime.store import Lane, Successors
from duetime.stores.sql import limits
from duetime.stores.sql.queues import JUST_NOW
from duetime.stores.sql.store import READ, SUBMIT
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.session import SqliteSession, SqliteTransaction
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    LANE,
    PRIORITY,
    QUEUE,
    TARGET,
    TENANT,
    claim,
    claim_one,
    fired,
    job,
    jobs,
    joined,
    limit,
    live_counts,
    new_id,
    passed,
    pause_schedule,
    put,
    request,
    retry,
    schedule,
    set_limits,
    settle,
    started,
    stored,
    success,
)

OPERATIONS = 10  # of SQLite's virtual machine, between two counts
TIMEOUT_SECONDS = 60.0


@pytest.fixture
async def store(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(shutil.copyfile(sqlite_template, tmp_path / "duetime.db"))
    await opened.open()
    yield opened
    await opened.close()


async def cost(store: SqliteStore, act: Callable[[], Coroutine[Any, Any, object]]) -> int:
    """Operations of the writer's virtual machine: unlike times, they are the same in every run."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += OPERATIONS
        return 0

    async def listen(transaction: SqliteTransaction) -> None:
        transaction.connection.set_progress_handler(count, OPERATIONS)  # type: ignore[attr-defined]  # the writer's is a real one

    async def stop(transaction: SqliteTransaction) -> None:
        transaction.connection.set_progress_handler(None, 0)  # type: ignore[attr-defined]  # the writer's is a real one

    await store._write(SUBMIT, listen)
    await act()
    await store._write(SUBMIT, stop)
    return counted


async def query(store: SqliteStore, statement: str) -> list[Any]:
    async def execute(session: SqliteSession) -> list[Any]:
        return session.connection.execute(statement).fetchall()

    return await store._read(READ, execute)


class TestCost:
    """It does not grow with the number of jobs that wait."""

    async def test_claim_next_to_a_flood_of_a_key_without_permits(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(max_running=1))
        await started(store, node, job(now - DAY, limit_key="a"))
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        few = await cost(store, lambda: claim(store, request(node)))
        await store.add_jobs(jobs(20_000, now - DAY, limit_key="a"))
        many = await cost(store, lambda: claim(store, request(node)))
        assert many < 2 * few + 1_000

    async def test_claim_from_a_flood_without_a_limit(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(100, now - DAY, limit_key="a"))
        few = await cost(store, lambda: store.claim(request(node, room=10)))
        await store.add_jobs(jobs(20_000, now - DAY, limit_key="a"))
        many = await cost(store, lambda: store.claim(request(node, room=10)))
        assert many < 3 * few

    async def test_claim_with_keys_that_are_not_due(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now + DAY + at, limit_key=f"{at}") for at in range(10)])
        few = await cost(store, lambda: claim(store, request(node)))
        await store.add_jobs([job(now + DAY + at, limit_key=f"{at}") for at in range(20_000)])
        many = await cost(store, lambda: claim(store, request(node)))
        assert many < 2 * few

    async def test_claim_with_more_keys_than_it_looks_at(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY, limit_key=f"{at}") for at in range(1_000)])
        few = await cost(store, lambda: store.claim(request(node, room=10)))
        await store.add_jobs([job(now - DAY, limit_key=f"{at}") for at in range(20_000)])
        many = await cost(store, lambda: store.claim(request(node, room=10)))
        assert many < 2 * few

    async def test_plain_jobs_next_to_a_flood(self, store: SqliteStore) -> None:
        """They are read from an index of their own."""
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(max_running=1))
        await started(store, node, job(now - 2 * DAY, limit_key="a"))
        await store.add_jobs([*jobs(500, now - HOUR), *jobs(10, now - DAY, limit_key="a")])
        few = await cost(store, lambda: claim(store, request(node, room=10)))
        await store.add_jobs(jobs(20_000, now - DAY, limit_key="a"))
        many = await cost(store, lambda: claim(store, request(node, room=10)))
        assert many < 2 * few + 1_000

    async def test_restricted_jobs_of_the_future_cost_plain_jobs_little(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(500, now - HOUR))
        alone = await cost(store, lambda: claim(store, request(node, room=100)))
        await store.add_jobs([job(now + DAY, schedule_id=new_id(at), overlap="skip") for at in range(1_000)])
        assert await cost(store, lambda: claim(store, request(node, room=100))) < 1.1 * alone + 100

    async def test_settlement_does_not_read_all_waiting_jobs(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(max_running=2))
        running = [await started(store, node, job(now - 2 * DAY, limit_key="a")) for _ in range(2)]
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        assert await claim(store, request(node)) == []
        taking = Successors(node, 10, (QUEUE,), (TARGET,))
        few = await cost(store, lambda: store.settle([success(running[0], now)], taking))
        await store.add_jobs(jobs(20_000, now - DAY, limit_key="a"))
        many = await cost(store, lambda: store.settle([success(running[1], now)], taking))
        assert many < 2 * few


class TestWaiting:
    async def test_flood_is_stored_as_waiting(self, store: SqliteStore) -> None:
        await store.add_jobs(jobs(100, await store.time() - DAY, limit_key="a"))
        rows = await query(store, "SELECT waits_for, count(*) FROM jobs GROUP BY 1")
        assert dict(rows) == {None: READY_PER_KEY, "a": 100 - READY_PER_KEY}

    async def test_waiting_jobs_are_listed_and_counted_as_pending(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(max_running=1))
        running = await started(store, node, job(now - DAY, limit_key="a"))
        drafts = [
            job(now - HOUR, limit_key="a"),
            job(now + HOUR, limit_key="a"),
            job(now - HOUR, limit_key="a", schedule_id=new_id(0), overlap="queue"),
        ]
        await store.add_jobs(drafts)
        assert await claim(store, request(node)) == []
        for states in (frozenset({State.PENDING}), frozenset({State.PENDING, State.SUCCEEDED})):
            assert {found.id for found in await store.list_jobs(JobFilter(TENANT, states), 10)} == {
                draft.id for draft in drafts
            }
        assert [
            found.id for found in await store.list_jobs(JobFilter(TENANT, frozenset({State.RUNNING})), 10)
        ] == [running.id]
        assert await live_counts(store) == {QUEUE: QueueCounts(3, 2, 1)}

    async def test_repeated_settlement_of_a_job_that_waits_again_is_recognised(
        self, store: SqliteStore
    ) -> None:
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now - HOUR, limit_key="a"))
        other = await started(store, node, job(now - HOUR, limit_key="a"))
        await set_limits(store, limit(max_running=1))
        decision = retry(running, now - HOUR, now)
        for _ in range(2):
            assert await settle(store, [decision]) == []
            assert await claim(store, request(node)) == []
        assert await settle(store, [success(running, now)]) == [running.id]
        assert await settle(store, [success(other, now)]) == []

    async def test_withdrawn_fire_of_a_limited_task_is_deleted(self, store: SqliteStore) -> None:
        now = await store.time()
        planned = await put(store, schedule(limit_key="a"), now + HOUR)
        [fire] = await fired(store, planned, None, now + HOUR)
        assert (await stored(store, fire)).limit_key == "a"
        await pause_schedule(store, TENANT, planned.draft.name, None)
        assert await store.get_job(TENANT, fire) is None

    async def test_sweep_looks_at_some_names_and_the_next_goes_on(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "MAX_SWEPT", 3)
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(max_running=1))
        keys = [f"{at}" for at in range(8)]
        await store.add_jobs([job(now - DAY, limit_key=key) for key in keys for _ in range(2)])
        assert len(await claim(store, request(node))) == 8
        await set_limits(store, limit(max_running=2))
        found = [len(await claim(store, request(node, sweep=True))) for _ in range(3)]
        assert found == [3, 3, 2]

    async def test_cancelled_job_lets_the_next_one_ask(self, store: SqliteStore) -> None:
        """All claimable jobs of the key are gone; a job that was stored as waiting takes the place of
        each."""
        node, now = await joined(store), await store.time()
        drafts = jobs(READY_PER_KEY + 2, now - DAY, limit_key="a")
        await store.add_jobs(drafts)
        for draft in drafts[:READY_PER_KEY]:
            await store.cancel_job(TENANT, draft.id, "not wanted")
        assert {row.id for row in await claim(store, request(node))} == {
            draft.id for draft in drafts[READY_PER_KEY:]
        }


class Recorder:
    def __init__(self, store: SqliteStore) -> None:
        self.hints: list[Hint] = []
        self._changed = asyncio.Event()
        store.subscribe(self)

    def __call__(self, hint: Hint) -> None:
        self.hints.append(hint)
        self._changed.set()

    async def first(self) -> Hint:
        await asyncio.wait_for(self._changed.wait(), TIMEOUT_SECONDS)
        return self.hints[0]


class TestHints:
    @pytest.mark.parametrize("retried", [False, True])
    async def test_freed_permit_is_announced_in_the_lane_of_the_next_job(
        self, store: SqliteStore, retried: bool
    ) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(max_running=1))
        running = await started(store, node, job(now - HOUR, limit_key="a"))
        await store.add_jobs(
            [
                job(now - HOUR, limit_key="a", queue="other", priority=9),
                job(now - HOUR, limit_key="b", queue="third"),
            ]
        )
        assert await claim(store, request(node, Lane("other", 9, 0))) == []
        recorder = Recorder(store)
        await store.settle([retry(running, now + DAY, now) if retried else success(running, now)])
        await recorder.first()
        lanes = {(hint.queue, hint.priority) for hint in recorder.hints if isinstance(hint, JobHint)}
        assert lanes == {("other", 9)} | ({(QUEUE, PRIORITY)} if retried else set())

    async def test_freed_permit_that_no_job_waits_for_is_not_announced(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(max_running=1))
        running, _ = [await started(store, node, job(now - HOUR, limit_key=key)) for key in ("a", "b")]
        await store.add_jobs([job(now + HOUR, limit_key="a"), job(now - HOUR, limit_key="b")])
        assert await claim(store, request(node)) == []
        recorder = Recorder(store)
        await store.settle([success(running, now)])
        await store.hint([JobHint("by hand", 0, 0)])
        assert await recorder.first() == JobHint("by hand", 0, 0)

    async def test_vacancy_in_a_limited_queue_is_announced(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, max_running=1))
        running, other = (
            await started(store, node, job(now)),
            await started(store, node, job(now, queue="other")),
        )
        recorder = Recorder(store)
        await store.settle([success(other, now)])
        await store.settle([success(running, now)])
        hint = await recorder.first()
        assert isinstance(hint, JobHint)
        assert hint.queue == QUEUE


class TestQueues:
    async def test_job_held_up_by_a_queue_limit_is_found_below_the_bound(self, store: SqliteStore) -> None:
        """A worker reads each lane from the last due time it saw; the job that a limit held up is due before
        that."""
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, max_running=1))
        await store.add_jobs(jobs(2, now - HOUR))
        first = await claim_one(store, node)
        await store.settle([success(first, now)])
        assert len(await claim(store, request(node, Lane(QUEUE, PRIORITY, now - SECOND)))) == 1

    async def test_plain_lane_between_limited_ones_is_read_in_order(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue("a", max_running=1))
        await store.set_queue(Queue("c", rate=Rate(2, HOUR)))
        for queue in "abc":
            await store.add_jobs(jobs(5, now - DAY, queue=queue))
        lanes = [Lane(queue, PRIORITY, 0) for queue in "abc"]
        assert [row.queue for row in await claim(store, request(node, *lanes))] == list("abbbbbcc")
        assert [row.queue for row in await claim(store, request(node, *lanes, LANE))] == []

    async def test_next_due_waits_for_the_rate_of_the_queue(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, rate=Rate(1, HOUR)))
        await store.add_jobs(jobs(3, now - DAY, limit_key="a"))
        await set_limits(store, limit(rate=Rate(100, 1)))
        assert len(await claim(store, request(node))) == 1
        found = (await store.due_jobs(request(node))).next_at
        assert found is not None
        assert found >= now + HOUR

    async def test_next_due_finds_a_job_that_the_prefetch_had_to_leave(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(rate=Rate(1, HOUR)))
        await store.add_jobs([job(now - DAY, limit_key="a"), job(now + HOUR // 2, limit_key="a")])
        wanted = request(node, prefetch=HOUR)
        assert len(await claim(store, wanted)) == 1
        assert (await store.due_jobs(wanted)).next_at == now + HOUR // 2

    async def test_keys_whose_starts_are_earned_again_are_forgotten(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY, limit_key="a"), job(now - DAY, limit_key="b", target="other")])
        await set_limits(store, limit(rate=Rate(1, 1)), limit(rate=Rate(1, HOUR), target="other"))
        assert len(await claim(store, request(node, targets=(TARGET, "other")))) == 2
        await store.prune(now - DAY)
        assert await query(store, "SELECT name FROM limit_keys") == [("b",)]

    @pytest.mark.parametrize("max_running", [None, 1])
    async def test_start_that_a_queue_allows_since_the_last_claim_is_not_missed(
        self, store: SqliteStore, max_running: int | None
    ) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(3, now - DAY))
        await store.set_queue(Queue(QUEUE, max_running=max_running, rate=Rate(1, SECOND // 20)))
        assert len(await claim(store, request(node))) == 1
        first = (await store.due_jobs(request(node))).next_at
        assert first is not None
        await passed(store, first)
        found = (await store.due_jobs(request(node))).next_at
        assert found == (None if max_running else first) or await store.time() > first + JUST_NOW, (
            "on a slow machine it is too late"
        )

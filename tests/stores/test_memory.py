"""The memory store against the conformance suite, and what is its own: its clock, its order, its speed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings

from duetime.model.instant import SECOND
from duetime.model.job import Claimed, JobDraft, JobFilter
from duetime.store import Store
from duetime.stores.memory import MemoryStore
from duetime.stores.memory.lanes import FEW_STALE, DueHeap
from duetime.stores.memory.row import Row
from duetime.testing.conformance import StoreConformance
from duetime.testing.conformance.drafts import DAY, LANE, TENANT, add, claim_one, job, jobs, joined, of_schedule, request, success
from duetime.testing.conformance.machine import StoreMachine


class TestMemory(StoreConformance):
    @pytest.fixture
    async def store(self) -> Store:
        return MemoryStore()

    @pytest.fixture
    async def second_store(self, store: Store) -> Store:
        return store.twin()


class MemoryMachine(StoreMachine):
    def open_store(self) -> Store:
        return MemoryStore()


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000 * SECOND

    def __call__(self) -> int:
        return self.now


async def test_time_is_the_clock_that_was_handed_in() -> None:
    hand = Hand()
    store = MemoryStore(hand)
    node = await joined(store, ttl=10 * SECOND)
    await add(store, job(hand.now + 5 * SECOND))
    assert await store.claim(request(node)) == []
    hand.now += 5 * SECOND
    claimed = await claim_one(store, node)
    assert (await store.time(), claimed.due_at) == (hand.now, hand.now)


async def test_a_lease_ends_to_the_microsecond() -> None:
    hand = Hand()
    store = MemoryStore(hand)
    node, other = await joined(store, ttl=10), await joined(store)
    await add(store, job(0))
    hand.now += 9
    assert await store.bury(other) == []
    hand.now += 1
    assert await store.claim(request(node)) == []
    assert await store.bury(other) == [node]


async def test_a_blocked_job_is_judged_when_it_falls_due() -> None:
    """Within the prefetch it only waits; due and still blocked, it is skipped; the other policies wait on."""
    hand = Hand()
    store = MemoryStore(hand)
    node = await joined(store, ttl=DAY)
    drafts = [of_schedule(job(0).id, 0, overlap) for overlap in ("skip", "queue")]
    await store.add_jobs(drafts)
    running = await store.claim(request(node))
    assert len(running) == 2
    later = [draft._replace(id=job(1).id, fire_time=1, due_at=hand.now + 10) for draft in drafts]
    await store.add_jobs(later)
    assert await store.claim(request(node, prefetch=20)) == []
    hand.now += 10
    assert await store.claim(request(node)) == []
    assert await store.settle([success(row, hand.now) for row in running]) == []
    assert [row.id for row in await store.claim(request(node))] == [later[1].id]


async def history(drafts: list[JobDraft]) -> list[list[Claimed]]:
    store = MemoryStore(Hand())
    node = await joined(store, ttl=DAY)
    await store.add_jobs(drafts)
    return [await store.claim(request(node, room=7, targets=("task 0", "task 1", "task 2"))) for _ in range(10)]


async def test_equal_calls_give_equal_answers() -> None:
    """The simulation repeats a run from its seed: nothing may depend on hashes or addresses."""
    drafts = [job(position % 5, target=f"task {position % 4}") for position in range(60)]
    assert await history(drafts) == await history(drafts)


async def test_threads_do_not_lose_or_double_jobs() -> None:
    """The heart calls from a thread of its own."""
    store = MemoryStore()
    node = await joined(store)
    drafts = jobs(4_000, await store.time() - DAY)

    def submit_and_claim(part: int) -> list[Claimed]:
        asyncio.run(store.add_jobs(drafts[part::8]))
        return [row for _ in range(50) for row in asyncio.run(store.claim(request(node, room=5)))]

    with ThreadPoolExecutor(8) as pool:
        claimed = [row.id for rows in pool.map(submit_and_claim, range(8)) for row in rows]
    claimed += [row.id for row in await store.claim(request(node, room=4_000))]
    assert sorted(claimed) == sorted(draft.id for draft in drafts)
    assert len(await store.list_jobs(JobFilter(TENANT), 5_000)) == 4_000


async def test_a_listener_may_call_the_store() -> None:
    store = MemoryStore()
    node, seen = await joined(store), list[list[Claimed]]()

    def look(_: object) -> None:
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(asyncio.run, store.claim(request(node, LANE))).result(timeout=5))

    store.subscribe(look)
    draft = await add(store, job(await store.time()))
    assert [row.id for row in seen[0]] == [draft.id]


def test_entries_that_count_no_more_do_not_pile_up() -> None:
    heap = DueHeap()
    row = Row(job(0), 0)
    for ticket in range(1, 10_000):
        heap.push(row, ticket)
        heap.forget(row)
    assert len(heap._entries) <= FEW_STALE * 2
    heap.push(row, 10_000)
    first = heap.first()
    assert first is not None
    assert first[3] is row

"""The memory store against the conformance suite, and what is its own: its clock, its order, its speed."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings

from duetime.model.hint import JobHint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, JobDraft, JobFilter
from duetime.model.limit import Rate
from duetime.store import EVENTS_KEPT_FOR, Store
from duetime.stores.memory import MemoryStore
from duetime.stores.memory.due_heap import FEW_STALE, DueHeap
from duetime.stores.memory.row import Row
from duetime.testing.conformance import StoreConformance
from duetime.testing.conformance.drafts import (
    DAY,
    LANE,
    TENANT,
    add,
    claim,
    claim_one,
    events_after,
    job,
    jobs,
    joined,
    last_event,
    limit,
    of_schedule,
    request,
    set_limits,
    settle,
    success,
)
from duetime.testing.conformance.state_machine import StoreMachine


class TestMemory(StoreConformance):
    @pytest.fixture
    async def store(self) -> Store:
        return MemoryStore()

    @pytest.fixture
    async def second_store(self, store: Store) -> Store:
        return store.clone()


class MemoryMachine(StoreMachine):
    def open_store(self) -> Store:
        return MemoryStore()


TestMemoryMachine = pytest.mark.slow(MemoryMachine.TestCase)
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
    assert await claim(store, request(node)) == []
    hand.now += 5 * SECOND
    claimed = await claim_one(store, node)
    assert (await store.time(), claimed.due_at) == (hand.now, hand.now)


async def test_a_lease_ends_to_the_microsecond() -> None:
    hand = Hand()
    store = MemoryStore(hand)
    node, other = await joined(store, ttl=10), await joined(store)
    await add(store, job(0))
    hand.now += 9
    assert await store.expire_nodes(other) == []
    hand.now += 1
    assert await claim(store, request(node)) == []
    assert await store.expire_nodes(other) == [node]


async def test_a_blocked_job_is_judged_when_it_falls_due() -> None:
    """Within the prefetch it only waits; due and still blocked, it is skipped; the other policies wait on."""
    hand = Hand()
    store = MemoryStore(hand)
    node = await joined(store, ttl=DAY)
    drafts = [of_schedule(job(0).id, 0, overlap) for overlap in ("skip", "queue")]
    await store.add_jobs(drafts)
    running = await claim(store, request(node))
    assert len(running) == 2
    later = [draft._replace(id=job(1).id, fire_time=1, due_at=hand.now + 10) for draft in drafts]
    await store.add_jobs(later)
    assert await claim(store, request(node, prefetch=20)) == []
    hand.now += 10
    assert await claim(store, request(node)) == []
    assert await settle(store, [success(row, hand.now) for row in running]) == []
    assert [row.id for row in await claim(store, request(node))] == [later[1].id]


async def test_a_rate_is_earned_back_to_the_microsecond() -> None:
    """A bucket of three that fills by one every twenty seconds."""
    hand = Hand()
    store = MemoryStore(hand)
    node = await joined(store, ttl=DAY)
    await store.add_jobs(jobs(10, 0, limit_key="a"))
    await set_limits(store, limit(rate=Rate(3, 60 * SECOND)))
    ask = request(node)
    assert len(await claim(store, ask)) == 3
    assert (await store.due_jobs(ask)).next_at == hand.now + 20 * SECOND
    hand.now += 20 * SECOND - 1
    assert await claim(store, ask) == []
    hand.now += 1
    assert len(await claim(store, ask)) == 1
    hand.now += 45 * SECOND
    assert len(await claim(store, ask)) == 2
    assert (await store.due_jobs(ask)).next_at == hand.now + 15 * SECOND


async def test_a_permit_that_is_passed_on_is_announced() -> None:
    store, heard = MemoryStore(), list[object]()
    node = await joined(store)
    await store.add_jobs(jobs(3, 0, limit_key="a"))
    [first] = await claim(store, request(node), limits=(limit(max_running=1),))
    store.subscribe(heard.append)
    assert await settle(store, [success(first, 0)]) == []
    assert heard == [JobHint(LANE.queue, LANE.priority, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [10, 5_000])
async def test_waiting_jobs_cost_a_claim_nothing(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of limit keys that are full or out of starts are not looked at again until that has changed."""
    store, looks = MemoryStore(), Counter[str]()
    node = await joined(store)
    now = await store.time()
    await store.add_jobs(
        [job(now + at // keys * DAY - 1, limit_key=f"{at % keys}") for at in range(3 * keys)]
    )
    await store.add_jobs(
        [job(now - 1, limit_key=f"rated {at % keys}", target="rated") for at in range(2 * keys)]
    )
    await set_limits(store, limit(max_running=1), limit(rate=Rate(1, DAY), target="rated"))
    ask = request(node, room=100_000, targets=("task", "rated"))
    assert len(await claim(store, ask)) == 2 * keys
    assert await claim(store, ask) == []
    look = DueHeap.first

    def counted(heap: DueHeap) -> object:
        looks["heap"] += 1
        return look(heap)

    monkeypatch.setattr(DueHeap, "first", counted)
    await add(store, job(now - 1))
    assert len(await claim(store, ask)) == 1
    assert (await store.due_jobs(ask)).next_at is not None
    assert looks["heap"] < 20


async def history(drafts: list[JobDraft]) -> list[list[Claimed]]:
    store = MemoryStore(Hand())
    node = await joined(store, ttl=DAY)
    await store.add_jobs(drafts)
    return [
        await claim(store, request(node, room=7, targets=("task 0", "task 1", "task 2"))) for _ in range(10)
    ]


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
        return [row for _ in range(50) for row in asyncio.run(claim(store, request(node, room=5)))]

    with ThreadPoolExecutor(8) as pool:
        claimed = [row.id for rows in pool.map(submit_and_claim, range(8)) for row in rows]
    claimed += [row.id for row in await claim(store, request(node, room=4_000))]
    assert sorted(claimed) == sorted(draft.id for draft in drafts)
    assert len(await store.list_jobs(JobFilter(TENANT), 5_000)) == 4_000


async def test_a_listener_may_call_the_store() -> None:
    store = MemoryStore()
    node, seen = await joined(store), list[list[Claimed]]()

    def look(_: object) -> None:
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(asyncio.run, claim(store, request(node, LANE))).result(timeout=60))

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


async def test_old_events_are_forgotten_and_their_last_id_is_not() -> None:
    hand = Hand()
    store = MemoryStore(hand)
    await store.add_events([b"old", b"older than it seems"])
    hand.now += EVENTS_KEPT_FOR // 2
    await store.add_events([b"young"])
    hand.now += EVENTS_KEPT_FOR // 2 + 1
    await store.prune(0)
    assert await events_after(store, 0, 10) == [(3, b"young")]
    hand.now += EVENTS_KEPT_FOR
    await store.prune(0)
    assert (await events_after(store, 0, 10), await last_event(store)) == ([], 3)
    await store.add_events([b"new"])
    assert await events_after(store, 0, 10) == [(4, b"new")]

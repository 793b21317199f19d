"""Rates of gates: how many jobs start in a period, counted by the store's own clock for all nodes."""

from __future__ import annotations

import asyncio
from collections import Counter

from duetime.model.instant import SECOND
from duetime.model.limit import Rate
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    MINUTE,
    add,
    bound,
    claim_one,
    job,
    jobs,
    joined,
    new_id,
    of_schedule,
    passed,
    release,
    request,
    success,
)

THREE_AN_HOUR = bound(rate=Rate(3, HOUR))
ONE_AN_HOUR = bound(rate=Rate(1, HOUR))
QUICK = Rate(2, SECOND // 10)  # one more every 50 ms


class RateConformance:
    async def test_no_more_start_than_the_rate_allows(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(drafts := jobs(10, now - DAY, gate="a"))
        claimed = [row for _ in range(4) for row in await store.claim(request(node, room=2, bounds=(THREE_AN_HOUR,)))]
        assert [row.id for row in claimed] == [draft.id for draft in drafts[:3]]

    async def test_a_finished_job_is_not_a_start_earned_back(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(5, now - DAY, gate="a"))
        claimed = await store.claim(request(node, bounds=(THREE_AN_HOUR,)))
        assert await store.settle([success(claimed[0], now), success(claimed[1], now), release(claimed[2], now)]) == []
        assert await store.claim(request(node, bounds=(THREE_AN_HOUR,))) == []

    async def test_the_rate_holds_across_nodes(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        assert len(await store.claim(request(node, room=2, bounds=(THREE_AN_HOUR,)))) == 2
        assert len(await second_store.claim(request(other, room=5, bounds=(THREE_AN_HOUR,)))) == 1
        assert await store.claim(request(node, bounds=(THREE_AN_HOUR,))) == []

    async def test_each_gate_has_a_rate_of_its_own(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY + at, gate=f"{at % 4}") for at in range(20)])
        claimed = await store.claim(request(node, bounds=(THREE_AN_HOUR,)))
        assert Counter(row.gate for row in claimed) == {f"{number}": 3 for number in range(4)}

    async def test_starts_are_earned_back_one_by_one(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        limit = (bound(rate=QUICK),)
        before = await store.time()
        assert len(await store.claim(request(node, bounds=limit))) == 2
        after = await store.time()
        if await store.time() < before + QUICK.interval:  # a slow machine may have earned one meanwhile
            again = await store.claim(request(node, bounds=limit))
            assert again == [] or await store.time() >= before + QUICK.interval
        await passed(store, after + QUICK.interval)
        earned = await store.claim(request(node, bounds=limit))
        assert 1 <= len(earned) <= 1 + (await store.time() - before) // QUICK.interval

    async def test_a_long_rest_earns_no_more_than_the_whole(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        limit = (bound(rate=Rate(2, SECOND // 100)),)
        assert len(await store.claim(request(node, bounds=limit))) == 2
        await passed(store, await store.time() + SECOND // 30)
        assert len(await store.claim(request(node, bounds=limit))) == 2

    async def test_number_and_rate_together(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        limit = (bound(most=2, rate=Rate(3, HOUR)),)
        first = await store.claim(request(node, bounds=limit))
        assert len(first) == 2
        assert await store.settle([success(row, now) for row in first]) == []
        assert len(await store.claim(request(node, bounds=limit))) == 1
        assert await store.claim(request(node, bounds=limit)) == []

    async def test_a_gate_out_of_starts_holds_up_nobody_else(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(300, now - DAY, gate="a"))
        assert len(await store.claim(request(node, bounds=(THREE_AN_HOUR,)))) == 3
        await store.add_jobs([job(now, gate="b"), job(now)])
        assert {row.gate for row in await store.claim(request(node, bounds=(THREE_AN_HOUR,)))} == {"b", None}

    async def test_exclusive_jobs_spend_the_rate_of_their_gate(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([of_schedule(new_id(0), now - at, "queue", gate="a") for at in range(5)])
        assert len(await store.claim(request(node, bounds=(THREE_AN_HOUR,)))) == 3
        assert await store.claim(request(node, bounds=(THREE_AN_HOUR,))) == []

    async def test_two_handles_spend_one_rate(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        await store.add_jobs(jobs(50, now - DAY, gate="a"))
        pairs = [(store, node), (second_store, other)] * 10
        limit = (bound(rate=Rate(7, HOUR)),)
        answers = await asyncio.gather(*(handle.claim(request(who, room=2, bounds=limit)) for handle, who in pairs))
        rest = await store.claim(request(node, bounds=limit))
        assert sum(map(len, answers)) + len(rest) == 7


class NextStartConformance:
    """next_due knows when a rate allows the next start."""

    async def test_the_instant_at_which_the_rate_allows_the_next(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2, now - DAY, gate="a"))
        before = await store.time()
        await claim_one(store, node, bounds=(ONE_AN_HOUR,))
        found = await store.next_due(request(node, bounds=(ONE_AN_HOUR,)))
        assert found is not None
        assert before + HOUR <= found <= await store.time() + HOUR

    async def test_a_job_due_before_that_comes_first(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(2, now - DAY, gate="a"), job(now + MINUTE)])
        await claim_one(store, node, bounds=(ONE_AN_HOUR,))
        assert await store.next_due(request(node, bounds=(ONE_AN_HOUR,))) == now + MINUTE

    async def test_a_job_due_after_that_does_not(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(2, now - DAY, gate="a"), job(now + DAY)])
        await claim_one(store, node, bounds=(ONE_AN_HOUR,))
        found = await store.next_due(request(node, bounds=(ONE_AN_HOUR,)))
        assert found is not None
        assert now + HOUR <= found < now + 2 * HOUR

    async def test_a_spent_rate_with_nothing_waiting_is_nothing_ahead(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await add(store, job(now - DAY, gate="a"))
        await claim_one(store, node, bounds=(ONE_AN_HOUR,))
        assert await store.next_due(request(node, bounds=(ONE_AN_HOUR,))) is None

    async def test_the_claim_at_that_instant_gets_it(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(20, now - DAY, gate="a"))
        limit = (bound(rate=Rate(1, SECOND // 20)),)
        found = None
        while found is None:  # on a busy machine the instant may have passed before it is asked for
            await claim_one(store, node, bounds=limit)
            found = await store.next_due(request(node, bounds=limit))
        await passed(store, found)
        await claim_one(store, node, bounds=limit)

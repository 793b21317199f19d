"""Rates of limit keys: how many jobs start in a period, counted by the store's own clock for all nodes."""

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
    claim,
    claim_one,
    job,
    jobs,
    joined,
    limit,
    new_id,
    of_schedule,
    passed,
    release,
    request,
    set_limits,
    settle,
    success,
)

THREE_AN_HOUR = limit(rate=Rate(3, HOUR))
ONE_AN_HOUR = limit(rate=Rate(1, HOUR))
QUICK = Rate(2, SECOND // 10)  # one more every 50 ms


class RateConformance:
    async def test_no_more_start_than_the_rate_allows(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(drafts := jobs(10, now - DAY, limit_key="a"))
        claimed = [
            row
            for _ in range(4)
            for row in await claim(store, request(node, room=2), limits=(THREE_AN_HOUR,))
        ]
        assert [row.id for row in claimed] == [draft.id for draft in drafts[:3]]

    async def test_a_finished_job_is_not_a_start_earned_back(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(5, now - DAY, limit_key="a"))
        claimed = await claim(store, request(node), limits=(THREE_AN_HOUR,))
        assert (
            await settle(
                store, [success(claimed[0], now), success(claimed[1], now), release(claimed[2], now)]
            )
            == []
        )
        assert await claim(store, request(node), limits=(THREE_AN_HOUR,)) == []

    async def test_the_rate_holds_across_nodes(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        assert len(await claim(store, request(node, room=2), limits=(THREE_AN_HOUR,))) == 2
        assert len(await claim(second_store, request(other, room=5), limits=(THREE_AN_HOUR,))) == 1
        assert await claim(store, request(node), limits=(THREE_AN_HOUR,)) == []

    async def test_each_gate_has_a_rate_of_its_own(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY + at, limit_key=f"{at % 4}") for at in range(20)])
        claimed = await claim(store, request(node), limits=(THREE_AN_HOUR,))
        assert Counter(row.limit_key for row in claimed) == {f"{number}": 3 for number in range(4)}

    async def test_starts_are_earned_back_one_by_one(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        limits = (limit(rate=QUICK),)
        await set_limits(store, *limits)
        before = await store.time()
        # Once: on a slow machine a second claim may come when more is earned
        assert len((await store.claim(request(node))).jobs) == 2
        after = await store.time()
        if await store.time() < before + QUICK.interval:  # a slow machine may have earned one meanwhile
            again = await claim(store, request(node), limits=limits)
            assert again == [] or await store.time() >= before + QUICK.interval
        await passed(store, after + QUICK.interval)
        earned = await claim(store, request(node), limits=limits)
        assert 1 <= len(earned) <= 1 + (await store.time() - before) // QUICK.interval

    async def test_a_long_rest_earns_no_more_than_the_whole(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        await set_limits(store, limit(rate=Rate(2, SECOND // 100)))
        assert (
            len((await store.claim(request(node))).jobs) == 2
        )  # once: a second claim may come when more is earned
        await passed(store, await store.time() + SECOND // 30)
        assert len((await store.claim(request(node))).jobs) == 2

    async def test_number_and_rate_together(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        limits = (limit(max_running=2, rate=Rate(3, HOUR)),)
        first = await claim(store, request(node), limits=limits)
        assert len(first) == 2
        assert await settle(store, [success(row, now) for row in first]) == []
        assert len(await claim(store, request(node), limits=limits)) == 1
        assert await claim(store, request(node), limits=limits) == []

    async def test_limit_key_without_starts_left_does_not_delay_other_jobs(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(300, now - DAY, limit_key="a"))
        assert len(await claim(store, request(node), limits=(THREE_AN_HOUR,))) == 3
        await store.add_jobs([job(now, limit_key="b"), job(now)])
        assert {row.limit_key for row in await claim(store, request(node), limits=(THREE_AN_HOUR,))} == {
            "b",
            None,
        }

    async def test_exclusive_jobs_spend_the_rate_of_their_gate(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([of_schedule(new_id(0), now - at, "queue", limit_key="a") for at in range(5)])
        assert len(await claim(store, request(node), limits=(THREE_AN_HOUR,))) == 3
        assert await claim(store, request(node), limits=(THREE_AN_HOUR,)) == []

    async def test_two_handles_spend_one_rate(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        await store.add_jobs(jobs(50, now - DAY, limit_key="a"))
        pairs = [(store, node), (second_store, other)] * 10
        limits = (limit(rate=Rate(7, HOUR)),)
        answers = await asyncio.gather(
            *(claim(handle, request(who, room=2), limits=limits) for handle, who in pairs)
        )
        rest = await claim(store, request(node), limits=limits)
        assert sum(map(len, answers)) + len(rest) == 7


class NextStartConformance:
    """next_due knows when a rate allows the next start."""

    async def test_the_instant_at_which_the_rate_allows_the_next(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2, now - DAY, limit_key="a"))
        before = await store.time()
        await claim_one(store, node, limits=(ONE_AN_HOUR,))
        found = (await store.due_jobs(request(node))).next_at
        assert found is not None
        assert before + HOUR <= found <= await store.time() + HOUR

    async def test_a_job_due_before_that_comes_first(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(2, now - DAY, limit_key="a"), job(now + MINUTE)])
        await claim_one(store, node, limits=(ONE_AN_HOUR,))
        assert (await store.due_jobs(request(node))).next_at == now + MINUTE

    async def test_a_job_due_after_that_does_not(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(2, now - DAY, limit_key="a"), job(now + DAY)])
        await claim_one(store, node, limits=(ONE_AN_HOUR,))
        found = (await store.due_jobs(request(node))).next_at
        assert found is not None
        assert now + HOUR <= found < now + 2 * HOUR

    async def test_a_spent_rate_with_nothing_waiting_is_nothing_ahead(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await add(store, job(now - DAY, limit_key="a"))
        await claim_one(store, node, limits=(ONE_AN_HOUR,))
        assert (await store.due_jobs(request(node))).next_at is None

    async def test_the_claim_at_that_instant_gets_it(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(20, now - DAY, limit_key="a"))
        await set_limits(store, limit(rate=Rate(1, SECOND // 2)))
        found = None
        for _ in range(15):  # on a busy machine the instant may have passed before it is asked for
            await store.claim(request(node))
            found = (await store.due_jobs(request(node))).next_at
            if found is not None:
                break
        assert found is not None
        await passed(store, found)
        assert (await store.claim(request(node))).jobs

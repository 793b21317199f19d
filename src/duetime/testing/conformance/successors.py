"""Permits that pass from a settled job to the next one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.model.instant import SECOND
from duetime.model.job import State
from duetime.model.lease import NodeId
from duetime.model.limit import Rate
from duetime.store import OfNode, Store, Successors
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    MINUTE,
    QUEUE,
    TARGET,
    Decide,
    claim,
    claim_one,
    death,
    job,
    jobs,
    joined,
    limit,
    loss,
    new_id,
    of_schedule,
    release,
    request,
    retry_later,
    settle,
    stored,
    success,
)

ONE = (limit(max_running=1),)
ENDINGS = {"success": success, "death": death, "retry": retry_later, "loss": loss}


def taking(node: NodeId, room: int = 10, **changes: object) -> Successors:
    return replace(Successors(node, room, (QUEUE,), (TARGET,)), **changes)  # type: ignore[arg-type]


class SuccessorConformance:
    """One job ends, the next one runs: no claim between two jobs of one limit key."""

    @pytest.mark.parametrize("decide", ENDINGS.values(), ids=ENDINGS)
    async def test_the_next_job_starts_under_the_same_permit(self, store: Store, decide: Decide) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(drafts := jobs(3, now - DAY, limit_key="a"))
        first = await claim_one(store, node, limits=ONE)
        refused, [following] = await store.settle([decide(first, now)], taking(node))
        assert refused == []
        assert (following.id, following.attempt, following.permit) == (drafts[1].id, 1, first.permit)
        assert await store.running_jobs(OfNode(node), 10) == [following]
        assert (await stored(store, following.id)).state is State.RUNNING
        assert await claim(store, request(node)) == []

    async def test_a_repeated_settlement_passes_nothing_on(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(3, now - DAY, limit_key="a"))
        first = await claim_one(store, node, limits=ONE)
        decision = success(first, now)
        assert len((await store.settle([decision], taking(node))).successors) == 1
        assert await store.settle([decision], taking(node)) == ([], [])

    async def test_a_node_without_room_leaves_the_next_job_to_claims(self, store: Store) -> None:
        node, other, now = await joined(store), await joined(store), await store.time()
        await store.add_jobs(drafts := jobs(3, now - DAY, limit_key="a"))
        first = await claim_one(store, node, limits=ONE)
        assert await store.settle([success(first, now)], taking(node, room=0)) == ([], [])
        assert (await claim_one(store, other)).id == drafts[1].id

    async def test_a_node_gets_only_jobs_that_it_can_run(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2, now - DAY, limit_key="a"))
        first = await claim_one(store, node, limits=ONE)
        assert await claim(store, request(node)) == []
        for elsewhere in (taking(node, queues=("other",)), taking(node, targets=("other",))):
            assert (await store.settle([success(first, now)], elsewhere)).successors == []
            first = await claim_one(store, node)
            await store.add_jobs(jobs(1, now - HOUR, limit_key="a"))
            assert await claim(store, request(node)) == []

    async def test_the_most_urgent_job_is_next(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        low, high = job(now - DAY, limit_key="a", priority=1), job(now - MINUTE, limit_key="a", priority=9)
        await store.add_jobs([job(now - 2 * DAY, limit_key="a"), low, high])
        lanes = tuple(request(node).lanes[0]._replace(priority=priority) for priority in (5, 9, 1))
        [first] = await claim(store, request(node, *lanes), ONE)
        assert [row.id for row in (await store.settle([success(first, now)], taking(node))).successors] == [
            high.id
        ]

    async def test_several_successors_share_one_permit(self, store: Store) -> None:
        node, other, now = await joined(store), await joined(store), await store.time()
        await store.add_jobs(jobs(6, now - DAY, limit_key="a"))
        first = await claim_one(store, node, limits=ONE)
        following = (await store.settle([success(first, now)], taking(node, wanted={first.id: 3}))).successors
        assert {row.permit for row in following} == {first.permit}
        assert len(following) == 3
        assert (
            await store.settle([success(following[0], now)], taking(node, wanted={following[0].id: 0}))
        ).successors == []
        assert await claim(store, request(other)) == []
        last = [success(row, now) for row in following[1:]]
        wanted = {row.id: 0 for row in following[1:]}
        assert (await store.settle(last, taking(node, wanted=wanted))).successors == []
        assert len(await claim(store, request(other, sweep=True))) == 1

    async def test_each_of_a_batch_passes_its_own_permit_on(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY + at, limit_key=f"key {at % 5}") for at in range(20)])
        held = await claim(store, request(node), (limit(max_running=2),))
        for _ in range(1):
            following = (await store.settle([success(row, now) for row in held], taking(node))).successors
            assert sorted(row.permit for row in following if row.permit) == sorted(
                row.permit for row in held if row.permit
            )
        assert await claim(store, request(node)) == []

    async def test_a_lowered_limit_takes_hold_as_jobs_end(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(8, now - DAY, limit_key="a"))
        held = await claim(store, request(node), (limit(max_running=3),))
        assert len(held) == 3
        assert await claim(store, request(node), ONE) == []
        assert await store.settle([success(held[0], now)], taking(node)) == ([], [])
        assert await store.settle([success(held[1], now)], taking(node)) == ([], [])
        assert len((await store.settle([success(held[2], now)], taking(node))).successors) == 1

    async def test_a_raised_limit_is_found_by_the_sweep(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(8, now - DAY, limit_key="a"))
        assert len(await claim(store, request(node), ONE)) == 1
        assert len(await claim(store, request(node, sweep=True), (limit(max_running=4),))) == 3

    async def test_a_job_under_a_rate_is_not_passed_on(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(3, now - DAY, limit_key="a"))
        first = await claim_one(store, node, limits=(limit(1, Rate(1, HOUR)),))
        assert await store.settle([success(first, now)], taking(node)) == ([], [])
        assert await claim(store, request(node)) == []

    async def test_the_next_fire_of_a_schedule_starts_when_the_first_is_final(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        await store.add_jobs(
            drafts := [of_schedule(schedule_id, now - age * MINUTE, "queue") for age in (3, 2)]
        )
        first = await claim_one(store, node)
        assert await claim(store, request(node)) == []
        assert (await store.settle([retry_later(first, now)], taking(node))).successors == []
        assert await store.reschedule_job(first.tenant, first.id, now, None)
        again = await claim_one(store, node)
        [following] = (await store.settle([success(again, now)], taking(node))).successors
        assert (following.id, following.attempt) == (drafts[1].id, 1)

    async def test_a_released_job_may_be_claimed_again(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2, now - DAY, limit_key="a"))
        first = await claim_one(store, node, limits=ONE)
        assert await settle(store, [release(first, now)]) == []
        assert len(await claim(store, request(node, prefetch=SECOND))) == 1

    async def test_a_flood_does_not_hide_other_keys(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2_000, now - DAY, limit_key="flood"))
        await store.add_jobs([job(now - HOUR, limit_key=f"key {at}") for at in range(10)])
        claimed = await claim(store, request(node, room=30), (limit(max_running=2),))
        assert len(claimed) == 12

"""claim and next_due: who gets which job, in which order, and who gets nothing."""

from __future__ import annotations

from duetime.model.instant import SECOND
from duetime.model.job import Claimed, JobFilter, State
from duetime.model.lease import NodeId
from duetime.store import Lane, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    LANE,
    MINUTE,
    PRIORITY,
    QUEUE,
    TARGET,
    TENANT,
    add,
    claim,
    claim_one,
    expired,
    job,
    jobs,
    joined,
    new_id,
    of_schedule,
    request,
    retry,
    settle,
    started,
    stored,
)


class ClaimConformance:
    async def test_a_due_job_runs_under_the_node(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = await add(store, job(now))
        await claim_one(store, node)
        found = await stored(store, draft.id)
        assert (found.state, found.attempt, found.node, found.failures, found.losses) == (
            State.RUNNING,
            1,
            node,
            0,
            0,
        )
        assert found.claimed_at is not None
        assert now <= found.claimed_at <= await store.time()
        assert found.started_at == max(found.claimed_at or 0, found.due_at)

    async def test_job_that_goes_back_is_not_claimed(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [retry(claimed, now, now)]) == []
        found = await stored(store, claimed.id)
        assert (found.state, found.claimed_at, found.started_at) == (State.PENDING, None, None)
        [again] = await claim(store, request(node))
        [listed] = await store.list_jobs(JobFilter(TENANT), 10)
        assert listed == await stored(store, again.id)
        assert listed.claimed_at is not None

    async def test_the_worker_sees_the_whole_job(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        details = {
            "schedule_id": new_id(0),
            "schedule": "nightly",
            "policies": b"{1}",
            "target_spec": b"{2}",
            "payload": b"{3}",
            "limit_key": "key",
        }
        draft = await add(store, job(now - 1, fire_time=now - HOUR, **details))
        claimed = await claim_one(store, node)
        expected = Claimed(
            id=draft.id,
            attempt=1,
            target=TARGET,
            payload=b"{3}",
            due_at=now - 1,
            queue=QUEUE,
            priority=PRIORITY,
            fire_time=now - HOUR,
            failures=0,
            losses=0,
            cancel_requested=False,
            schedule_id=draft.schedule_id,
            schedule="nightly",
            overlap=None,
            policies=b"{1}",
            target_spec=b"{2}",
            checkpoint=None,
            tenant=TENANT,
            limit_key="key",
            permit=claimed.permit,
        )
        assert claimed == expected
        assert claimed.permit is not None

    async def test_a_claimed_job_is_not_claimed_again(self, store: Store) -> None:
        node = await joined(store)
        await add(store, job(await store.time()))
        await claim_one(store, node)
        assert await claim(store, request(node)) == []
        assert await claim(store, request(await joined(store))) == []

    async def test_nothing_is_claimed_before_it_is_due(self, store: Store) -> None:
        """I4."""
        node = await joined(store)
        await add(store, job(await store.time() + MINUTE))
        assert await claim(store, request(node)) == []
        assert await claim(store, request(node, prefetch=30 * SECOND)) == []

    async def test_the_prefetch_looks_ahead(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        near, _ = await add(store, job(now + MINUTE)), await add(store, job(now + HOUR))
        assert (await claim_one(store, node, prefetch=2 * MINUTE)).id == near.id

    async def test_each_lane_gives_its_oldest_due_first(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = [job(now - age * MINUTE) for age in (3, 1, 5, 2, 4)]
        await store.add_jobs(drafts)
        first = await claim(store, request(node, room=2))
        rest = await claim(store, request(node))
        assert [now - row.due_at for row in first + rest] == [age * MINUTE for age in (5, 4, 3, 2, 1)]

    async def test_lanes_come_in_the_order_given(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        for position, priority in enumerate((0, 9, 5)):
            for queue in ("a", "b"):
                await store.add_jobs(jobs(2, now - (position + 1) * HOUR, queue=queue, priority=priority))
        order = [("b", 9), ("a", 9), ("b", 5), ("a", 5), ("a", 0), ("b", 0)]
        claimed = await claim(store, request(node, *(Lane(queue, priority, 0) for queue, priority in order)))
        assert [(row.queue, row.priority) for row in claimed] == [lane for lane in order for _ in range(2)]

    async def test_urgent_lanes_fill_the_room_first(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(5, now - DAY, priority=0), *jobs(3, now, priority=9)])
        lanes = (Lane(QUEUE, 9, 0), Lane(QUEUE, 0, 0))
        assert [row.priority for row in await claim(store, request(node, *lanes, room=4))] == [9, 9, 9, 0]
        assert [row.priority for row in await claim(store, request(node, *lanes, room=9))] == [0, 0, 0, 0]

    async def test_room_is_never_exceeded(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(10, now - DAY), *jobs(10, now - DAY, queue="b")])
        lanes = (LANE, Lane("b", PRIORITY, 0))
        assert [len(await claim(store, request(node, *lanes, room=room))) for room in (0, 1, 12, 100)] == [
            0,
            1,
            12,
            7,
        ]

    async def test_other_lanes_are_left_alone(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [job(now, queue="other"), job(now, priority=PRIORITY + 1), job(now, queue=QUEUE.upper())]
        )
        assert await claim(store, request(node)) == []

    async def test_no_lane_and_no_target_claim_nothing(self, store: Store) -> None:
        node = await joined(store)
        await add(store, job(await store.time()))
        assert await claim(store, request(node, lanes=())) == []
        assert await claim(store, request(node, targets=())) == []

    async def test_rows_before_the_low_bound_are_left_to_the_sweep(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = [job(now - age * MINUTE) for age in (4, 3, 2, 1)]
        await store.add_jobs(drafts)
        bounded = await claim(store, request(node, Lane(QUEUE, PRIORITY, drafts[2].due_at)))
        assert [row.id for row in bounded] == [draft.id for draft in drafts[2:]]
        swept = await claim(store, request(node, sweep=True))
        assert [row.id for row in swept] == [draft.id for draft in drafts[:2]]

    async def test_each_lane_has_its_own_low_bound(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - HOUR, queue="a"), job(now - HOUR, queue="b")])
        claimed = await claim(store, request(node, Lane("a", PRIORITY, now), Lane("b", PRIORITY, 0)))
        assert [row.queue for row in claimed] == ["b"]

    async def test_job_without_a_handler_on_this_node_waits(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(300, now - DAY, target="elsewhere"), job(now)])
        claimed = await claim(store, request(node, room=10))
        assert [row.target for row in claimed] == [TARGET]
        able = await claim(store, request(await joined(store), targets=("elsewhere", "more"), room=1_000))
        assert len(able) == 300

    async def test_several_targets_share_a_lane_by_due_time(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [job(now - 10 + position, target=f"task {position % 3}") for position in range(9)]
        )
        claimed = await claim(store, request(node, targets=("task 0", "task 2"), room=5))
        assert [now - row.due_at for row in claimed] == [10, 8, 7, 5, 4]

    async def test_the_attempt_number_only_rises(self, store: Store) -> None:
        """I5."""
        node, now = await joined(store), await store.time()
        await add(store, job(now))
        for attempt in range(1, 5):
            claimed = await claim_one(store, node)
            assert (claimed.attempt, claimed.failures) == (attempt, attempt - 1)
            assert await settle(store, [retry(claimed, now, now)]) == []

    async def test_many_are_claimed_once_each(self, store: Store) -> None:
        node = await joined(store)
        drafts = jobs(3_000, await store.time() - DAY)
        await store.add_jobs(drafts)
        claimed = [row.id for _ in range(4) for row in await claim(store, request(node, room=1_000))]
        assert sorted(claimed) == sorted(draft.id for draft in drafts)


class ClaimantConformance:
    """Only a node that is alive, with a lease that has not ended, gets anything."""

    async def claims_nothing(self, store: Store, node: NodeId) -> None:
        draft = await add(store, job(await store.time(), schedule_id=new_id(0), overlap="skip"))
        plain = await add(store, job(await store.time()))
        assert await claim(store, request(node)) == []
        for waiting in (draft, plain):
            assert (await stored(store, waiting.id)).state is State.PENDING

    async def test_not_one_that_left(self, store: Store) -> None:
        node = await joined(store)
        await store.leave(node)
        await self.claims_nothing(store, node)

    async def test_not_one_whose_lease_has_ended(self, store: Store) -> None:
        await self.claims_nothing(store, await expired(store))

    async def test_not_one_declared_dead(self, store: Store) -> None:
        node = await expired(store)
        assert await store.expire_nodes(await joined(store)) == [node]
        await store.beat(node, HOUR)
        await self.claims_nothing(store, node)

    async def test_unknown_job_is_not_claimed(self, store: Store) -> None:
        await self.claims_nothing(store, NodeId(await joined(store) + 1_000))

    async def test_one_that_beats_again_in_time(self, store: Store) -> None:
        node = await expired(store)
        assert (await store.beat(node, HOUR)).alive
        await add(store, job(await store.time()))
        assert (await claim_one(store, node)).attempt == 1


class NextDueConformance:
    async def test_the_earliest_that_is_not_due_yet(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - HOUR), job(now + 2 * HOUR), job(now + HOUR), job(now + 3 * HOUR)])
        assert (await store.due_jobs(request(node))).next_at == now + HOUR

    async def test_nothing_ahead(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        assert (await store.due_jobs(request(node))).next_at is None
        await store.add_jobs(jobs(5, now - HOUR))
        assert (await store.due_jobs(request(node))).next_at is None

    async def test_what_the_prefetch_covers_is_not_ahead(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now + MINUTE), job(now + HOUR)])
        assert (await store.due_jobs(request(node, prefetch=10 * MINUTE))).next_at == now + HOUR

    async def test_only_these_lanes_and_of_all_of_them(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [job(now + hours * HOUR, queue=queue) for queue, hours in (("a", 3), ("b", 2), ("c", 1))]
        )
        lanes = (Lane("a", PRIORITY, 0), Lane("b", PRIORITY, 0))
        assert (await store.due_jobs(request(node, *lanes))).next_at == now + 2 * HOUR
        assert (await store.due_jobs(request(node, Lane("c", PRIORITY + 1, 0)))).next_at is None

    async def test_the_low_bound_does_not_matter(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await add(store, job(now + HOUR))
        assert (await store.due_jobs(request(node, Lane(QUEUE, PRIORITY, now + DAY)))).next_at == now + HOUR

    async def test_jobs_that_run_one_at_a_time_count(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now + 2 * HOUR), of_schedule(new_id(0), now + HOUR, "queue")])
        assert (await store.due_jobs(request(node))).next_at == now + HOUR

    async def test_jobs_that_left_do_not_count(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = [job(now + HOUR), job(now + 2 * HOUR), job(now + 3 * HOUR)]
        await store.add_jobs(drafts)
        await store.cancel_job(TENANT, drafts[0].id, "")
        assert (await store.due_jobs(request(node))).next_at == now + 2 * HOUR
        await claim_one(store, node, prefetch=2 * HOUR + MINUTE)
        assert (await store.due_jobs(request(node))).next_at == now + 3 * HOUR

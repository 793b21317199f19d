"""Gates: how many jobs of one run at once, over all nodes, and how those of many take turns."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from duetime.model.instant import Micros
from duetime.model.job import Claimed, State
from duetime.model.lease import NodeId
from duetime.store import Lane, OfDeadNodes, OfNode, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    MINUTE,
    PRIORITY,
    QUEUE,
    TARGET,
    TENANT,
    Decide,
    add,
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
    started,
    stored,
    success,
)

ENDINGS = {"success": success, "death": death, "retry": retry_later, "release": release, "loss": loss}
AT_MOST_ONE = limit(max_running=1)


def by_key(claimed: list[Claimed]) -> Counter[str | None]:
    return Counter(row.limit_key for row in claimed)


class LimitConformance:
    """Never more than `most` of one limit key, for any number of nodes."""

    async def test_a_claim_takes_no_more_than_the_bound(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = jobs(10, now - DAY, limit_key="a")
        await store.add_jobs(drafts)
        claimed = await claim(store, request(node), limits=(limit(max_running=3),))
        assert [row.id for row in claimed] == [draft.id for draft in drafts[:3]]
        assert await claim(store, request(node), limits=(limit(max_running=3),)) == []

    async def test_the_bound_holds_across_nodes(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        limits = (limit(max_running=3),)
        mine = await claim(store, request(node, room=2), limits=limits)
        theirs = await claim(second_store, request(other), limits=limits)
        assert (len(mine), len(theirs)) == (2, 1)
        assert await claim(store, request(node), limits=limits) == []

    async def test_each_gate_has_room_of_its_own(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY + at, limit_key=f"key {at % 5}") for at in range(20)])
        claimed = await claim(store, request(node), limits=(limit(max_running=2),))
        assert by_key(claimed) == {f"key {number}": 2 for number in range(5)}

    async def test_a_target_without_a_bound_has_none(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        assert len(await claim(store, request(node), limits=(limit(max_running=1, target="another"),))) == 10

    async def test_a_bound_without_numbers_bounds_nothing(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        assert len(await claim(store, request(node), limits=(limit(),))) == 10

    async def test_jobs_without_a_gate_know_no_bound(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(10, now - DAY), *jobs(10, now - DAY, limit_key="a")])
        assert by_key(await claim(store, request(node), limits=(AT_MOST_ONE,))) == {None: 10, "a": 1}

    async def test_each_target_has_the_bound_that_was_given_for_it(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        for target in ("x", "y", "z"):
            await store.add_jobs(jobs(6, now - DAY, target=target, limit_key=target))
        bounds = (limit(max_running=2, target="x"), limit(max_running=4, target="y"))
        claimed = await claim(store, request(node, targets=("x", "y", "z")), limits=bounds)
        assert by_key(claimed) == {"x": 2, "y": 4, "z": 6}

    async def test_the_limit_of_the_node_that_started_last_holds(self, store: Store) -> None:
        """A new release raises the limit; the sweep finds the permits that are free."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, limit_key="a"))
        assert len(await claim(store, request(node), limits=(limit(max_running=2),))) == 2
        assert len(await claim(store, request(node, sweep=True), limits=(limit(max_running=5),))) == 3
        assert await claim(store, request(node, sweep=True), limits=(limit(max_running=2),)) == []

    async def test_a_job_claimed_without_a_bound_counts(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await started(store, node, job(now - DAY, limit_key="a"))
        await add(store, job(now - DAY, limit_key="a"))
        assert await claim(store, request(node), limits=(AT_MOST_ONE,)) == []

    @pytest.mark.parametrize("decide", ENDINGS.values(), ids=ENDINGS)
    async def test_every_end_of_an_attempt_frees_its_place(self, store: Store, decide: Decide) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(drafts := jobs(3, now - DAY, limit_key="a"))
        first = await claim_one(store, node, limits=(AT_MOST_ONE,))
        assert await claim(store, request(node), limits=(AT_MOST_ONE,)) == []
        assert await settle(store, [decide(first, now)]) == []
        following = await claim_one(store, node, limits=(AT_MOST_ONE,))
        assert following.id == (first.id if decide in (release, loss) else drafts[1].id)
        assert await claim(store, request(node), limits=(AT_MOST_ONE,)) == []

    async def test_a_dead_node_keeps_its_place_until_its_jobs_are_settled(self, store: Store) -> None:
        """It is unknown whether its task still runs until the node is declared dead."""
        node, other, now = await joined(store), await joined(store), await store.time()
        await store.add_jobs(jobs(2, now - DAY, limit_key="a"))
        await claim_one(store, node, limits=(AT_MOST_ONE,))
        await store.leave(node)
        assert await claim(store, request(other), limits=(AT_MOST_ONE,)) == []
        assert (
            await settle(store, [loss(row, now) for row in await store.running_jobs(OfDeadNodes(), 10)]) == []
        )
        assert (await claim_one(store, other, limits=(AT_MOST_ONE,))).attempt == 2

    async def test_cancelling_and_moving_what_waits(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(drafts := jobs(4, now - DAY, limit_key="a"))
        first = await claim_one(store, node, limits=(AT_MOST_ONE,))
        assert await claim(store, request(node), limits=(AT_MOST_ONE,)) == []
        await store.cancel_job(TENANT, drafts[1].id, "")
        assert await store.reschedule_job(TENANT, drafts[2].id, now + DAY, None)
        assert await settle(store, [success(first, now)]) == []
        assert (await claim_one(store, node, limits=(AT_MOST_ONE,))).id == drafts[3].id

    async def test_a_gate_is_one_over_all_queues_and_priorities(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        lanes = [Lane(queue, priority, 0) for priority in (9, 1) for queue in ("x", "y")]
        for lane in lanes:
            await store.add_jobs(jobs(2, now - DAY, queue=lane.queue, priority=lane.priority, limit_key="a"))
        claimed = await claim(store, request(node, *lanes), limits=(limit(max_running=3),))
        assert len(claimed) == 3
        assert Counter(row.priority for row in claimed) in ({9: 3}, {9: 2, 1: 1}), (
            "urgent ones were overtaken"
        )

    async def test_the_urgent_one_gets_the_free_place(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        lanes = (Lane(QUEUE, 9, 0), Lane(QUEUE, 1, 0))
        await store.add_jobs([job(now - DAY, priority=1, limit_key="a"), job(now, priority=9, limit_key="a")])
        assert (await claim_one(store, node, lanes=lanes, limits=(AT_MOST_ONE,))).priority == 9
        assert await claim(store, request(node, *lanes), limits=(AT_MOST_ONE,)) == []

    async def test_room_and_prefetch_hold_for_gates(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [
                job(now - 1, limit_key="a"),
                job(now - 1, limit_key="b"),
                job(now + MINUTE, limit_key="c"),
                job(now + HOUR, limit_key="d"),
            ]
        )
        assert len(await claim(store, request(node, room=1), limits=(AT_MOST_ONE,))) == 1
        assert len(await claim(store, request(node), limits=(AT_MOST_ONE,))) == 1
        assert by_key(await claim(store, request(node, prefetch=2 * MINUTE), limits=(AT_MOST_ONE,))) == {
            "c": 1
        }

    async def test_the_sweep_keeps_to_the_bounds(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(5, now - DAY, limit_key="a"))
        assert len(await claim(store, request(node, sweep=True), limits=(limit(max_running=2),))) == 2

    async def test_the_gate_travels_with_the_job(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = await add(store, job(now, limit_key="a key's name, 🦄"))
        assert (await stored(store, draft.id)).limit_key == draft.limit_key
        claimed = await claim_one(store, node)
        assert claimed.limit_key == draft.limit_key
        assert await store.running_jobs(OfNode(node), 1_000) == [claimed]
        await store.leave(node)
        assert await store.running_jobs(OfDeadNodes(), 10) == [claimed]
        assert await settle(store, [success(claimed, now)]) == []
        assert (await stored(store, draft.id)).limit_key == draft.limit_key

    async def test_limited_jobs_are_not_claimed_by_mistake(self, store: Store) -> None:
        """Not another target, not another lane, not a node without a lease."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [job(now, limit_key="a", target="elsewhere"), job(now, limit_key="b", queue="other")]
        )
        assert await claim(store, request(node), limits=(AT_MOST_ONE,)) == []
        await add(store, job(now, limit_key="c"))
        assert await claim(store, request(node, targets=()), limits=(AT_MOST_ONE,)) == []
        await store.leave(node)
        assert await claim(store, request(node), limits=(AT_MOST_ONE,)) == []

    async def test_gated_jobs_count_for_next_due(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [job(now + 2 * HOUR), job(now + HOUR, limit_key="a"), job(now - HOUR, limit_key="a")]
        )
        assert (await store.due_jobs(request(node))).next_at == now + HOUR

    async def test_what_waits_for_a_place_is_not_ahead(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(3, now - DAY, limit_key="a"))
        await claim_one(store, node, limits=(AT_MOST_ONE,))
        assert (await store.due_jobs(request(node))).next_at is None


class LimitWithOverlapConformance:
    """Jobs that have a key and a schedule which runs one at a time obey both."""

    @pytest.mark.parametrize("overlap", ["skip", "queue", "cancel_previous"])
    async def test_a_full_gate_is_no_overlap(self, store: Store, overlap: str) -> None:
        """Another job of the key runs, none of the schedule: it waits, and is neither skipped nor in
        anybody's way."""
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now - HOUR, limit_key="a"))
        draft = await add(store, of_schedule(new_id(0), now - MINUTE, overlap, limit_key="a"))
        assert await claim(store, request(node), limits=(AT_MOST_ONE,)) == []
        assert (await stored(store, draft.id)).state is State.PENDING
        assert not (await stored(store, running.id)).cancel_requested
        assert await settle(store, [success(running, now)]) == []
        assert (await claim_one(store, node, limits=(AT_MOST_ONE,))).id == draft.id

    async def test_a_free_gate_does_not_allow_an_overlap(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - HOUR, "queue", limit_key="a"))
        skipping = await add(store, of_schedule(schedule_id, now - MINUTE, "skip", limit_key="a"))
        waiting = await add(store, of_schedule(schedule_id, now - MINUTE + 1, "queue", limit_key="a"))
        assert await claim(store, request(node), limits=(limit(max_running=5),)) == []
        assert (await stored(store, skipping.id)).state is State.SKIPPED
        assert await settle(store, [success(first, now)]) == []
        assert (await claim_one(store, node, limits=(limit(max_running=5),))).id == waiting.id

    async def test_schedules_share_a_gate(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([of_schedule(new_id(0), now - at, "queue", limit_key="a") for at in range(6)])
        held = await claim(store, request(node), limits=(limit(max_running=2),))
        assert len(held) == 2
        for _ in range(4):
            assert await settle(store, [success(held.pop(0), now)]) == []
            held += await claim(store, request(node), limits=(limit(max_running=2),))
            assert len(held) == 2

    async def test_plain_exclusive_jobs_are_not_held_up_by_gated_ones(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [of_schedule(new_id(0), now - DAY + at, "queue", limit_key="a") for at in range(200)]
        )
        await claim_one(store, node, limits=(AT_MOST_ONE,))
        await add(store, of_schedule(new_id(0), now, "queue"))
        await add(store, job(now))
        assert by_key(await claim(store, request(node, room=2), limits=(AT_MOST_ONE,))) == {None: 2}


class FairTurnConformance:
    """One's flood does not hold up the others."""

    async def test_within_a_claim_they_take_turns(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [
                *jobs(300, now - DAY, limit_key="flood"),
                *jobs(5, now - HOUR, limit_key="b"),
                *jobs(5, now - HOUR, limit_key="c"),
            ]
        )
        assert by_key(await claim(store, request(node, room=9))) == {"flood": 3, "b": 3, "c": 3}

    async def test_what_others_leave_goes_to_the_flood(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(30, now - DAY, limit_key="flood"), *jobs(2, now - HOUR, limit_key="b")])
        assert by_key(await claim(store, request(node, room=10))) == {"flood": 8, "b": 2}

    async def test_within_a_gate_the_oldest_goes_first(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [job(now - age * MINUTE, limit_key=key) for age in (2, 4, 1, 3) for key in ("a", "b")]
        )
        claimed = [row for _ in range(4) for row in await claim(store, request(node, room=2))]
        for key in ("a", "b"):
            assert [(now - row.due_at) // MINUTE for row in claimed if row.limit_key == key] == [4, 3, 2, 1]

    async def test_a_flood_of_one_gate_leaves_room_for_jobs_without(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(300, now - DAY, limit_key="flood"), *jobs(2, now - HOUR)])
        assert by_key(await claim(store, request(node, room=6)))[None] == 2

    async def test_a_flood_without_gates_leaves_room_for_gated_jobs(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [*jobs(300, now - DAY), job(now - HOUR, limit_key="a"), job(now - HOUR, limit_key="b")]
        )
        found = by_key(await claim(store, request(node, room=6)))
        assert (found["a"], found["b"]) == (1, 1)

    @pytest.mark.parametrize("flood", ["flood", None])
    async def test_turns_go_on_from_claim_to_claim(self, store: Store, flood: str | None) -> None:
        """A worker with one free slot at a time: the flood is older than everything else."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [
                *jobs(300, now - DAY, limit_key=flood),
                job(now - HOUR, limit_key="b"),
                job(now - HOUR, limit_key="c"),
            ]
        )
        claimed = [await claim_one(store, node, room=1, keyed_first=bool(turn % 2)) for turn in range(60)]
        assert {"b", "c"} < {row.limit_key for row in claimed}

    async def test_full_gates_do_not_hide_a_free_one(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        full = [f"full {number}" for number in range(700)]
        await store.add_jobs([job(now - DAY, limit_key=key) for key in full for _ in range(2)])
        held = await drained(store, node, now)
        assert by_key(held) == Counter(full)
        await add(store, job(now, limit_key="zebra"))
        await add(store, job(now, limit_key="aardvark"))
        assert by_key(await drained(store, node, now)) == {"zebra": 1, "aardvark": 1}

    async def test_a_flood_behind_one_gate_costs_the_others_nothing(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await started(store, node, job(now - 2 * DAY, limit_key="flood"))
        await store.add_jobs([*jobs(5_000, now - DAY, limit_key="flood"), *jobs(50, now - HOUR)])
        assert by_key(await claim(store, request(node), limits=(AT_MOST_ONE,))) == {None: 50}

    async def test_priorities_come_before_turns(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [*jobs(4, now, priority=9, limit_key="a"), *jobs(4, now - DAY, priority=1, limit_key="b")]
        )
        claimed = await claim(store, request(node, Lane(QUEUE, 9, 0), Lane(QUEUE, 1, 0), room=6))
        assert by_key(claimed) == {"a": 4, "b": 2}


async def drained(store: Store, node: NodeId, now: Micros) -> list[Claimed]:
    """Claim, one of a key at once, until several claims in a row brought nothing: a claim may look at some
    of the keys only."""
    held: list[Claimed] = []
    empty = 0
    while empty < 10:
        claimed = await claim(store, request(node, room=250), limits=(AT_MOST_ONE,))
        held += claimed
        empty = 0 if claimed else empty + 1
    return held


class LimitRaceConformance:
    async def test_two_handles_share_the_places_of_a_gate(self, store: Store, second_store: Store) -> None:
        """C7: forty claims at once, five keys with two places each."""
        nodes = [await joined(store), await joined(second_store)]
        now = await store.time()
        await store.add_jobs([job(now - DAY + at, limit_key=f"{at % 5}") for at in range(100)])
        pairs = list(zip((store, second_store), nodes, strict=True)) * 20
        limits = (limit(max_running=2),)
        answers = await asyncio.gather(
            *(claim(handle, request(node, room=3), limits=limits) for handle, node in pairs)
        )
        held = [row for answer in answers for row in answer]
        assert max(by_key(held).values(), default=0) <= 2
        held += await claim(store, request(nodes[0]), limits=limits)
        assert by_key(held) == {f"{number}": 2 for number in range(5)}

    async def test_two_workers_drain_the_gates(self, store: Store, second_store: Store) -> None:
        """Never more than two of a key between claim and settlement, and none is left behind."""
        now = await store.time()
        await store.add_jobs(
            [
                job(now - DAY + at, limit_key=f"{at % 10}", target=TARGET, priority=PRIORITY)
                for at in range(300)
            ]
        )
        running: Counter[str | None] = Counter()
        most: Counter[str | None] = Counter()

        async def work(handle: Store) -> int:
            node, done, empty = await joined(handle), 0, 0
            while empty < 5:
                claimed = await claim(handle, request(node, room=7), limits=(limit(max_running=2),))
                for row in claimed:
                    running[row.limit_key] += 1
                    most[row.limit_key] = max(most[row.limit_key], running[row.limit_key])
                await asyncio.sleep(0)
                running.subtract(row.limit_key for row in claimed)
                assert await settle(handle, [success(row, now) for row in claimed]) == []
                done, empty = done + len(claimed), 0 if claimed else empty + 1
            return done

        done = await asyncio.gather(work(store), work(second_store), work(store))
        assert sum(done) == 300
        assert max(most.values()) <= 2

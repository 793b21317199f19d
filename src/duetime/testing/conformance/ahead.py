"""Claims ahead: a node that alone has what runs of a gate gets more of it than may run at once, and nobody else gets any meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter

from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.model.limit import Queue
from duetime.store import Lane, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    MINUTE,
    QUEUE,
    bound,
    claim_one,
    handed_over,
    job,
    jobs,
    joined,
    loss,
    release,
    request,
    success,
)

TWO = (bound(most=2),)
TWO_AND_THREE = (bound(most=2, ahead=3),)


class AheadConformance:
    async def test_who_is_alone_gets_more_than_may_run_at_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(drafts := jobs(10, now - DAY, gate="a"))
        claimed = await store.claim(request(node, bounds=TWO_AND_THREE))
        assert [row.id for row in claimed] == [draft.id for draft in drafts[:5]]
        assert await store.claim(request(node, bounds=TWO_AND_THREE)) == []

    async def test_what_has_ended_is_made_up_for(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        first, second, *_ = await store.claim(request(node, bounds=TWO_AND_THREE))
        assert await store.settle([success(first, now), release(second, now)]) == []
        again = await store.claim(request(node, bounds=TWO_AND_THREE))
        assert len(again) == 2
        assert second.id in {row.id for row in again}, "the oldest comes first"

    async def test_nobody_else_gets_any_meanwhile(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        held = await store.claim(request(node, bounds=TWO_AND_THREE))
        for decided in range(3):
            assert await second_store.claim(request(other, bounds=TWO_AND_THREE)) == [], f"{5 - decided} are held"
            assert await store.settle([success(held[decided], now)]) == []
        assert await second_store.claim(request(other, bounds=TWO_AND_THREE)) == []
        assert await store.settle([success(held[3], now)]) == []
        assert len(await second_store.claim(request(other, bounds=TWO_AND_THREE))) == 1

    async def test_two_who_share_a_gate_get_nothing_ahead(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        mine = await claim_one(store, node, room=1, bounds=TWO_AND_THREE)
        theirs = await claim_one(second_store, other, bounds=TWO_AND_THREE)
        assert await store.claim(request(node, bounds=TWO_AND_THREE)) == []
        assert await second_store.settle([success(theirs, now)]) == []
        assert len(await store.claim(request(node, bounds=TWO_AND_THREE))) == 4, f"{mine.id} is all that runs now"

    async def test_who_asks_for_none_gets_none(self, store: Store) -> None:
        """What is held beyond the bound by others who asked for it counts as it always did."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        assert len(await store.claim(request(node, bounds=TWO))) == 2
        assert len(await store.claim(request(node, bounds=TWO_AND_THREE))) == 3
        assert await store.claim(request(node, bounds=TWO)) == []

    async def test_each_gate_is_for_itself(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        for gate in "ab":
            await store.add_jobs(jobs(10, now - DAY, gate=gate))
        await store.claim(request(node, room=1, bounds=TWO_AND_THREE))
        theirs = await second_store.claim(request(other, bounds=TWO_AND_THREE))
        assert sorted(Counter(row.gate for row in theirs).values()) == [1, 5]

    async def test_what_is_not_due_is_not_taken_ahead(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(5, now + MINUTE, gate="a"))
        assert len(await store.claim(request(node, prefetch=HOUR, bounds=TWO_AND_THREE))) == 2
        await store.add_jobs(jobs(5, now - DAY, gate="a"))
        assert len(await store.claim(request(node, prefetch=HOUR, bounds=TWO_AND_THREE))) == 3

    async def test_a_limited_queue_has_no_places_to_hold(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, most=4))
        await store.add_jobs([*jobs(5, now - DAY, gate="a"), *jobs(1, now, gate="b")])
        claimed = await store.claim(request(node, bounds=TWO_AND_THREE))
        assert Counter(row.gate for row in claimed) == {"a": 2, "b": 1}

    async def test_a_job_handed_over_is_nobodys(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await handed_over(store, node, job(now - DAY, gate="a"), now + HOUR)
        await store.add_jobs(jobs(5, now - DAY, gate="a"))
        assert len(await store.claim(request(node, bounds=TWO_AND_THREE))) == 1

    async def test_a_dead_node_is_somebody_else_until_its_jobs_are_settled(self, store: Store) -> None:
        node, other, now = await joined(store), await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        await store.claim(request(node, room=1, bounds=TWO_AND_THREE))
        await store.leave(node)
        held = await store.claim(request(other, bounds=TWO_AND_THREE))
        assert len(held) == 1
        assert await store.settle([loss(row, now) for row in await store.orphans(10)]) == []
        assert len(await store.claim(request(other, bounds=TWO_AND_THREE))) == 4

    async def test_the_urgent_are_taken_first_and_count(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        lanes = (Lane(QUEUE, 9, 0), Lane(QUEUE, 1, 0))
        await store.add_jobs([*jobs(10, now - DAY, priority=1, gate="a"), *jobs(2, now, priority=9, gate="a")])
        claimed = await store.claim(request(node, *lanes, bounds=TWO_AND_THREE))
        assert [row.priority for row in claimed] == [9, 9, 1, 1, 1]

    async def test_room_is_shared_by_the_gates(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY + at, gate=f"{at % 3}") for at in range(30)])
        taken = Counter(row.gate for row in await store.claim(request(node, room=6, bounds=TWO_AND_THREE)))
        assert taken == {"0": 2, "1": 2, "2": 2}


class AheadRaceConformance:
    async def test_a_gate_is_never_over_its_bound_on_two_nodes(self, store: Store, second_store: Store) -> None:
        """C7, I19: many claims and settlements at once; after each settlement somebody counts."""
        now = await store.time()
        await store.add_jobs([job(now - DAY + at, gate=f"{at % 5}") for at in range(300)])
        held: dict[NodeId, list[Claimed]] = {}

        async def work(handle: Store) -> int:
            node, done, empty = await joined(handle), 0, 0
            mine = held[node] = []
            while empty < 20:
                # Not in `held` before the reply is here, and out of it before it is settled: what is counted is too little, never too much.
                claimed = await handle.claim(request(node, room=7, bounds=TWO_AND_THREE))
                mine += claimed
                _check(held)
                ending, mine[:] = mine[:4], mine[4:]
                assert await handle.settle([success(row, now) for row in ending]) == []
                done, empty = done + len(ending), 0 if ending else empty + 1
            return done

        done = await asyncio.gather(work(store), work(second_store), work(store))
        assert sum(done) == 300


def _check(held: dict[NodeId, list[Claimed]]) -> None:
    nodes: dict[str | None, Counter[NodeId]] = {}
    for node, rows in held.items():
        for row in rows:
            nodes.setdefault(row.gate, Counter())[node] += 1
    for counts in nodes.values():
        assert counts.total() <= (5 if len(counts) == 1 else 2), counts

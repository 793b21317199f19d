"""held and begin: what a worker asks and announces about the jobs it has."""

from __future__ import annotations

from duetime.model.lease import NodeId
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    TENANT,
    add,
    claim_one,
    finished,
    job,
    jobs,
    joined,
    loss,
    new_id,
    release,
    request,
    started,
    success,
)


class HeldConformance:
    async def test_a_worker_learns_what_it_holds(self, store: Store) -> None:
        """C3: the reply to its claim was lost."""
        node, other, now = await joined(store), await joined(store), await store.time()
        await store.add_jobs(jobs(20, now - DAY))
        mine, theirs = await store.claim(request(node, room=12)), await store.claim(request(other))
        assert sorted(await store.held(node)) == sorted(mine)
        assert sorted(await store.held(other)) == sorted(theirs)

    async def test_what_was_settled_is_not_held(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await finished(store, node, job(now), now)
        returned = await started(store, node, job(now))
        assert await store.settle([release(returned, now, due_at=now + HOUR)]) == []
        kept = await started(store, node, job(now))
        assert await store.held(node) == [kept]

    async def test_nobody_holds_what_waits(self, store: Store) -> None:
        node = await joined(store)
        await add(store, job(await store.time()))
        assert await store.held(node) == []
        assert await store.held(NodeId(node + 1_000)) == []

    async def test_a_held_job_shows_a_wish_to_stop(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.cancel_job(TENANT, claimed.id, "")
        assert await store.held(node) == [claimed._replace(cancel_requested=True)]

    async def test_a_dead_node_may_still_ask(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.leave(node)
        assert await store.held(node) == [claimed]


class BeginConformance:
    """A18: only a job that had begun is charged with the death of its worker."""

    async def test_an_orphan_shows_that_it_had_begun(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        begun, waiting = await started(store, node, job(now)), await started(store, node, job(now))
        assert await store.begin(begun.id, begun.attempt)
        await store.leave(node)
        assert sorted(await store.orphans(10)) == sorted([begun._replace(begun=True), waiting])

    async def test_beginning_twice_is_fine(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert [await store.begin(claimed.id, 1), await store.begin(claimed.id, 1)] == [True, True]

    async def test_the_next_attempt_has_not_begun(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await store.begin(claimed.id, claimed.attempt)
        assert await store.settle([loss(claimed, now)]) == []
        again = await claim_one(store, node)
        assert (again.attempt, again.begun) == (2, False)
        assert await store.held(node) == [again]

    async def test_whoever_lost_the_job_does_not_begin(self, store: Store) -> None:
        """B4: the attempt number decides."""
        node, now = await joined(store), await store.time()
        stale = await started(store, node, job(now))
        assert await store.settle([loss(stale, now)]) == []
        assert not await store.begin(stale.id, stale.attempt)
        fresh = await claim_one(store, node)
        assert not await store.begin(stale.id, stale.attempt)
        assert await store.held(node) == [fresh]
        assert await store.settle([success(fresh, now)]) == []
        assert not await store.begin(fresh.id, fresh.attempt)

    async def test_what_does_not_run_does_not_begin(self, store: Store) -> None:
        waiting = await add(store, job(await store.time()))
        assert not await store.begin(waiting.id, 0)
        assert not await store.begin(new_id(0), 1)

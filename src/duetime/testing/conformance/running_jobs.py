"""held and begin: what a worker asks and announces about the jobs it has."""

from __future__ import annotations

from duetime.model.lease import NodeId
from duetime.store import OfDeadNodes, OfNode, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    TENANT,
    add,
    claim,
    claim_one,
    finished,
    job,
    jobs,
    joined,
    loss,
    new_id,
    record_start,
    release,
    request,
    settle,
    started,
    success,
)


class NodeJobsConformance:
    async def test_a_worker_learns_what_it_holds(self, store: Store) -> None:
        """C3: the reply to its claim was lost."""
        node, other, now = await joined(store), await joined(store), await store.time()
        await store.add_jobs(jobs(20, now - DAY))
        mine, theirs = await claim(store, request(node, room=12)), await claim(store, request(other))
        assert sorted(await store.running_jobs(OfNode(node), 1_000)) == sorted(mine)
        assert sorted(await store.running_jobs(OfNode(other), 1_000)) == sorted(theirs)

    async def test_what_was_settled_is_not_held(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await finished(store, node, job(now), now)
        returned = await started(store, node, job(now))
        assert await settle(store, [release(returned, now, due_at=now + HOUR)]) == []
        kept = await started(store, node, job(now))
        assert await store.running_jobs(OfNode(node), 1_000) == [kept]

    async def test_waiting_job_belongs_to_no_node(self, store: Store) -> None:
        node = await joined(store)
        await add(store, job(await store.time()))
        assert await store.running_jobs(OfNode(node), 1_000) == []
        assert await store.running_jobs(OfNode(NodeId(node + 1_000)), 1_000) == []

    async def test_a_held_job_shows_a_wish_to_stop(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.cancel_job(TENANT, claimed.id, "")
        assert await store.running_jobs(OfNode(node), 1_000) == [claimed._replace(cancel_requested=True)]

    async def test_a_dead_node_may_still_ask(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.leave(node)
        assert await store.running_jobs(OfNode(node), 1_000) == [claimed]


class RecordStartConformance:
    """A18: only a job that had begun is charged with the death of its worker."""

    async def test_an_orphan_shows_that_it_had_begun(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        begun, waiting = await started(store, node, job(now)), await started(store, node, job(now))
        assert await record_start(store, begun.id, begun.attempt)
        await store.leave(node)
        assert sorted(await store.running_jobs(OfDeadNodes(), 10)) == sorted(
            [begun._replace(begun=True), waiting]
        )

    async def test_beginning_twice_is_fine(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert [await record_start(store, claimed.id, 1), await record_start(store, claimed.id, 1)] == [
            True,
            True,
        ]

    async def test_the_next_attempt_has_not_begun(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await record_start(store, claimed.id, claimed.attempt)
        assert await settle(store, [loss(claimed, now)]) == []
        again = await claim_one(store, node)
        assert (again.attempt, again.begun) == (2, False)
        assert await store.running_jobs(OfNode(node), 1_000) == [again]

    async def test_attempt_that_lost_its_job_does_not_start(self, store: Store) -> None:
        """B4: the attempt number decides."""
        node, now = await joined(store), await store.time()
        stale = await started(store, node, job(now))
        assert await settle(store, [loss(stale, now)]) == []
        assert not await record_start(store, stale.id, stale.attempt)
        fresh = await claim_one(store, node)
        assert not await record_start(store, stale.id, stale.attempt)
        assert await store.running_jobs(OfNode(node), 1_000) == [fresh]
        assert await settle(store, [success(fresh, now)]) == []
        assert not await record_start(store, fresh.id, fresh.attempt)

    async def test_what_does_not_run_does_not_begin(self, store: Store) -> None:
        waiting = await add(store, job(await store.time()))
        assert not await record_start(store, waiting.id, 0)
        assert not await record_start(store, new_id(0), 1)

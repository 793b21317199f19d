"""prune: what is forgotten, and what never is."""

from __future__ import annotations

from duetime.model.job import JobFilter, State
from duetime.model.lease import NodeId
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    QUEUE,
    TENANT,
    add,
    claim_one,
    death,
    expired,
    finished,
    fired,
    firing,
    job,
    jobs,
    joined,
    known,
    put,
    request,
    retry,
    schedule,
    started,
    stored,
    success,
)


async def known_nodes(store: Store) -> set[NodeId]:
    return {node.id for node in await store.nodes()}


class PruneConformance:
    async def test_old_jobs_go_and_newer_ones_stay(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        old = await finished(store, node, job(now - 20 * DAY), now - 10 * DAY)
        new = await finished(store, node, job(now - 20 * DAY), now - DAY)
        await store.prune(now - 5 * DAY)
        assert await store.get_job(TENANT, old.id) is None
        assert [found.id for found in await store.list_jobs(JobFilter(TENANT), 10)] == [new.id]

    async def test_the_bound_is_the_instant_it_finished(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        before = await finished(store, node, job(now - DAY), now - HOUR - 1)
        at = await finished(store, node, job(now - DAY), now - HOUR)
        await store.prune(now - HOUR)
        assert await store.get_job(TENANT, before.id) is None
        assert (await stored(store, at.id)).state is State.SUCCEEDED

    async def test_live_jobs_stay_however_old(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now - 300 * DAY))
        waiting = await add(store, job(now - 300 * DAY))
        await store.prune(now + DAY)
        assert (await stored(store, running.id)).state is State.RUNNING
        assert (await claim_one(store, node)).id == waiting.id
        assert await store.settle([success(running, now)]) == []

    async def test_attempts_go_with_their_job(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        dead = await started(store, node, job(now))
        assert await store.settle([death(dead, now - 10 * DAY)]) == []
        assert len(await store.list_attempts(dead.id)) == 1
        await store.prune(now - 5 * DAY)
        assert await store.list_attempts(dead.id) == []

    async def test_many_go_at_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2_000, now - DAY))
        claimed = await store.claim(request(node, room=2_000))
        assert await store.settle([success(row, now - 3 * DAY) for row in claimed]) == []
        await store.prune(now - DAY)
        assert await store.list_jobs(JobFilter(TENANT), 10) == []
        assert await store.queues() == [QUEUE]

    async def test_nothing_to_prune(self, store: Store) -> None:
        assert await store.prune(await store.time()) == 0

    async def test_pruning_twice(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await finished(store, node, job(now), now - DAY)
        await store.prune(now)
        assert await store.prune(now) == 0

    async def test_a_pruned_fire_is_not_fired_again(self, store: Store) -> None:
        """The cursor remembers what history forgot."""
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now - 10 * DAY)
        await fired(store, made, now + HOUR, now - 10 * DAY)
        assert await store.settle([success(await claim_one(store, node), now - 9 * DAY)]) == []
        await store.prune(now - DAY)
        assert await store.fire([firing(made, now + HOUR, now - 10 * DAY)]) == 0
        assert await store.claim(request(node)) == []
        assert (await known(store)).runs == 1

    async def test_a_pruned_job_was_not_a_retry_that_waits(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await store.settle([retry(claimed, now, now - 10 * DAY)]) == []
        await store.prune(now - DAY)
        assert (await claim_one(store, node)).attempt == 2


class ForgetConformance:
    async def test_dead_nodes_are_forgotten(self, store: Store) -> None:
        me, left, gone = await joined(store), await joined(store), await expired(store)
        await store.leave(left)
        await store.bury(me)
        assert await known_nodes(store) == {me, left, gone}
        await store.prune(await store.time() + DAY)
        assert await known_nodes(store) == {me}

    async def test_not_before_their_time(self, store: Store) -> None:
        me, gone = await joined(store), await expired(store)
        await store.bury(me)
        await store.prune(await store.time() - DAY)
        assert await known_nodes(store) == {me, gone}

    async def test_not_while_they_hold_jobs(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.leave(node)
        await store.prune(now + DAY)
        assert await known_nodes(store) == {node}
        assert [orphan.id for orphan in await store.orphans(10)] == [claimed.id]

    async def test_not_those_merely_late(self, store: Store) -> None:
        node = await expired(store)
        await store.prune(await store.time() + DAY)
        assert await known_nodes(store) == {node}

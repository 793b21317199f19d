"""prune: what is forgotten, and what never is."""

from __future__ import annotations

from duetime.model.job import JobFilter, State
from duetime.model.lease import NodeId
from duetime.model.limit import Queue
from duetime.store import AttemptUpdate, OfDeadNodes, OnceReply, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    QUEUE,
    TENANT,
    add,
    claim,
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
    new_id,
    put,
    request,
    retry,
    schedule,
    settle,
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
        assert await settle(store, [success(running, now)]) == []

    async def test_attempts_go_with_their_job(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        dead = await started(store, node, job(now))
        assert await settle(store, [death(dead, now - 10 * DAY)]) == []
        assert len(await store.list_attempts(dead.id)) == 1
        await store.prune(now - 5 * DAY)
        assert await store.list_attempts(dead.id) == []

    async def test_many_go_at_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2_000, now - DAY))
        claimed = await claim(store, request(node, room=2_000))
        assert await settle(store, [success(row, now - 3 * DAY) for row in claimed]) == []
        await store.prune(now - DAY)
        assert await store.list_jobs(JobFilter(TENANT), 10) == []
        assert await store.queues() == [Queue(QUEUE)]

    async def test_named_jobs_are_forgotten_and_no_others(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        old = [await finished(store, node, job(now - DAY), now - DAY, State.DEAD) for _ in range(3)]
        live = await add(store, job(now + HOUR))
        assert await store.prune([old[0].id, old[1].id, live.id, new_id(now)]) == 2
        assert await store.prune([]) == 0
        left = {one.id for one in await store.list_jobs(JobFilter(TENANT), 10)}
        assert left == {old[2].id, live.id}
        assert await store.list_attempts(old[0].id) == []
        await store.prune(now)
        assert {one.id for one in await store.list_jobs(JobFilter(TENANT), 10)} == {live.id}

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
        assert await settle(store, [success(await claim_one(store, node), now - 9 * DAY)]) == []
        await store.prune(now - DAY)
        assert await store.fire([firing(made, now + HOUR, now - 10 * DAY)]) == 0
        assert await claim(store, request(node)) == []
        assert (await known(store)).runs == 1

    async def test_a_pruned_job_was_not_a_retry_that_waits(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [retry(claimed, now, now - 10 * DAY)]) == []
        await store.prune(now - DAY)
        assert (await claim_one(store, node)).attempt == 2


class TargetPruneConformance:
    """Some targets have a retention of their own, shorter than the rest."""

    async def test_jobs_of_a_target_go_sooner(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        soon = await finished(store, node, job(now, target="chatty"), now - 2 * HOUR)
        late = await finished(store, node, job(now, target="chatty"), now - HOUR // 2)
        kept = await finished(store, node, job(now), now - 2 * HOUR)
        gone = await finished(store, node, job(now), now - 10 * DAY)
        assert await store.prune(now - 5 * DAY, {"chatty": now - HOUR}) >= 1
        assert {found.id for found in await store.list_jobs(JobFilter(TENANT), 10)} == {late.id, kept.id}
        assert await store.get_job(TENANT, soon.id) is None
        assert await store.get_job(TENANT, gone.id) is None

    async def test_an_instant_earlier_than_the_general_one_keeps_nothing(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        old = await finished(store, node, job(now, target="chatty"), now - 8 * DAY)
        await store.prune(now - 5 * DAY, {"chatty": now - 20 * DAY})
        assert await store.get_job(TENANT, old.id) is None

    async def test_several_targets_have_instants_of_their_own(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = {
            target: await finished(store, node, job(now, target=target), now - 3 * HOUR)
            for target in ("a", "b", "c")
        }
        await store.prune(now - 5 * DAY, {"a": now - 2 * HOUR, "b": now - 4 * HOUR})
        assert {found.target for found in await store.list_jobs(JobFilter(TENANT), 10)} == {"b", "c"}
        assert await store.get_job(TENANT, drafts["a"].id) is None

    async def test_their_attempts_and_marks_go_with_them(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = job(now - DAY, target="chatty")
        for _ in range(2):
            claimed = await started(store, node, draft)
            assert claimed.attempt == 1
            assert await store.take_once(claimed.id, 1, "mail", new_id(1)) is OnceReply.TAKEN
            assert await store.save_progress([AttemptUpdate(claimed.id, 1, b"so far", None)]) == []
            assert await settle(store, [death(claimed, now - 2 * HOUR)]) == []
            await store.prune(now - 5 * DAY, {"chatty": now - HOUR})
            assert await store.list_attempts(draft.id) == []

    async def test_live_jobs_of_a_target_stay(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now - 300 * DAY, target="chatty"))
        waiting = await add(store, job(now - 300 * DAY, target="chatty"))
        await store.prune(now - DAY, {"chatty": now})
        assert (await stored(store, running.id)).state is State.RUNNING
        assert (await stored(store, waiting.id)).state is State.PENDING


class ForgetConformance:
    async def test_dead_nodes_are_forgotten(self, store: Store) -> None:
        me, left, gone = await joined(store), await joined(store), await expired(store)
        await store.leave(left)
        await store.expire_nodes(me)
        assert await known_nodes(store) == {me, left, gone}
        await store.prune(await store.time() + DAY)
        assert await known_nodes(store) == {me}

    async def test_not_before_their_time(self, store: Store) -> None:
        me, gone = await joined(store), await expired(store)
        await store.expire_nodes(me)
        await store.prune(await store.time() - DAY)
        assert await known_nodes(store) == {me, gone}

    async def test_not_while_they_hold_jobs(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.leave(node)
        await store.prune(now + DAY)
        assert await known_nodes(store) == {node}
        assert [orphan.id for orphan in await store.running_jobs(OfDeadNodes(), 10)] == [claimed.id]

    async def test_not_those_merely_late(self, store: Store) -> None:
        node = await expired(store)
        await store.prune(await store.time() + DAY)
        assert await known_nodes(store) == {node}

"""Nodes: joining, beating, dying, and what becomes of the jobs they held."""

from __future__ import annotations

from duetime.model.job import State
from duetime.model.lease import NodeDraft, NodeId
from duetime.store import OfDeadNodes, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    TENANT,
    add,
    claim,
    claim_one,
    expired,
    finished,
    job,
    jobs,
    joined,
    lapsed,
    loss,
    release,
    request,
    settle,
    started,
    stored,
    success,
)


class NodeConformance:
    async def test_a_node_that_joined_is_listed(self, store: Store) -> None:
        before = await store.time()
        node = await store.join(NodeDraft("häuschen 🏠", ("worker", "planner"), "1.2.3"), HOUR)
        [found] = await store.nodes()
        assert (found.id, found.name, found.roles, found.version) == (
            node,
            "häuschen 🏠",
            ("worker", "planner"),
            "1.2.3",
        )
        assert (found.dead, found.running) == (False, None)
        assert before <= found.started_at <= await store.time()
        assert before + HOUR <= found.lease_until <= await store.time() + HOUR

    async def test_a_node_may_have_no_roles(self, store: Store) -> None:
        await store.join(NodeDraft("idle", (), ""), HOUR)
        [found] = await store.nodes()
        assert (found.roles, found.version) == ((), "")

    async def test_any_handle_sends_the_heartbeats_of_a_remote_node(
        self, store: Store, second_store: Store
    ) -> None:
        node = await second_store.join(NodeDraft("far", ("worker",), "", remote=True), HOUR)
        before = (await store.nodes())[0].lease_until
        assert (await store.beat(node, 2 * HOUR)).alive
        assert (await second_store.nodes())[0].lease_until > before

    async def test_every_run_has_an_id_of_its_own(self, store: Store, second_store: Store) -> None:
        ids = [await joined(handle) for handle in (store, second_store) * 5]
        assert len(set(ids)) == 10
        assert [found.id for found in await store.nodes()] == sorted(ids)

    async def test_an_id_is_never_given_again(self, store: Store) -> None:
        ids = []
        for _ in range(3):
            ids.append(await joined(store))
            await store.leave(ids[-1])
            await store.prune(await store.time() + DAY)
        assert len(set(ids)) == 3
        assert ids == sorted(ids)

    async def test_the_dead_are_listed_until_they_are_forgotten(self, store: Store) -> None:
        gone, here = await joined(store), await joined(store)
        await store.leave(gone)
        assert [(found.id, found.dead) for found in await store.nodes()] == [(gone, True), (here, False)]
        assert [(found.id, found.dead) for found in await store.nodes(living=True)] == [(here, False)]
        await store.prune(await store.time() + DAY)
        assert [found.id for found in await store.nodes()] == [here]

    async def test_jobs_it_holds_are_counted(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        held = [await started(store, node, job(now)) for _ in range(4)]
        await finished(store, node, job(now), now)
        assert await settle(store, [release(held[0], now, due_at=now + HOUR)]) == []
        assert [found.running for found in await store.nodes(counted=True)] == [3]
        assert [found.running for found in await store.nodes(living=True, counted=True)] == [3]
        assert [found.running for found in await store.nodes()] == [None]


class BeatConformance:
    async def test_a_beat_extends_the_lease(self, store: Store) -> None:
        node = await joined(store)
        before = await store.time()
        beat = await store.beat(node, DAY)
        assert (beat.alive, beat.cancels) == (True, ())
        [found] = await store.nodes()
        assert before + DAY <= found.lease_until <= await store.time() + DAY

    async def test_late_heartbeat_is_accepted_before_the_node_is_declared_dead(self, store: Store) -> None:
        node = await expired(store)
        assert (await store.beat(node, HOUR)).alive
        assert await store.expire_nodes(await joined(store)) == []

    async def test_a_dead_node_stays_dead(self, store: Store) -> None:
        node = await expired(store)
        assert await store.expire_nodes(await joined(store)) == [node]
        assert not (await store.beat(node, HOUR)).alive
        assert next(found for found in await store.nodes() if found.id == node).dead

    async def test_a_node_that_left_stays_dead(self, store: Store) -> None:
        node = await joined(store)
        await store.leave(node)
        assert not (await store.beat(node, HOUR)).alive

    async def test_an_unknown_node_is_not_alive(self, store: Store) -> None:
        assert not (await store.beat(NodeId(await joined(store) + 1_000), HOUR)).alive

    async def test_a_beat_tells_how_many_other_workers_are_alive(self, store: Store) -> None:
        node = await store.join(NodeDraft("one", ("worker", "planner"), ""), HOUR)
        assert (await store.beat(node, HOUR)).peers == 0
        others = [
            await store.join(NodeDraft(f"other {number}", ("api", "worker"), ""), HOUR) for number in range(2)
        ]
        planner = await store.join(NodeDraft("planner", ("planner",), ""), HOUR)
        assert [(await store.beat(one, HOUR)).peers for one in (node, *others, planner)] == [2, 2, 2, 3]
        await store.leave(others[0])
        assert (await store.beat(node, HOUR)).peers == 1

    async def test_a_beat_tells_which_jobs_to_stop(self, store: Store) -> None:
        node, other, now = await joined(store), await joined(store), await store.time()
        mine = [await started(store, node, job(now)) for _ in range(3)]
        theirs = await started(store, other, job(now))
        for claimed in (*mine[:2], theirs):
            await store.cancel_job(TENANT, claimed.id, "")
        assert set((await store.beat(node, HOUR)).cancels) == {row.id for row in mine[:2]}
        assert (await store.beat(other, HOUR)).cancels == (theirs.id,)
        assert await settle(store, [success(mine[0], now)]) == []
        assert (await store.beat(node, HOUR)).cancels == (mine[1].id,)


class ExpireNodesConformance:
    async def test_those_whose_lease_has_ended(self, store: Store) -> None:
        me, well, gone = await joined(store), await joined(store), await expired(store)
        assert await store.expire_nodes(me) == [gone]
        assert {found.id: found.dead for found in await store.nodes()} == {me: False, well: False, gone: True}

    async def test_each_is_reported_once(self, store: Store) -> None:
        me, gone = await joined(store), [await expired(store) for _ in range(3)]
        assert sorted(await store.expire_nodes(me)) == sorted(gone)
        assert await store.expire_nodes(me) == []

    async def test_never_oneself(self, store: Store) -> None:
        me = await expired(store)
        assert await store.expire_nodes(me) == []
        assert (await store.beat(me, HOUR)).alive

    async def test_one_that_left_is_no_news(self, store: Store) -> None:
        me, gone = await joined(store), await joined(store)
        await store.leave(gone)
        assert await store.expire_nodes(me) == []

    async def test_a_node_whose_beats_stopped(self, store: Store) -> None:
        me, node = await joined(store), await joined(store)
        await store.beat(node, 1)
        await lapsed(store)
        assert await store.expire_nodes(me) == [node]

    async def test_leaving_twice_is_fine(self, store: Store) -> None:
        node = await joined(store)
        await store.leave(node)
        await store.leave(node)
        assert [found.dead for found in await store.nodes()] == [True]

    async def test_leaving_and_dying_are_told_apart(self, store: Store) -> None:
        me, gone, left = await joined(store), await joined(store, 1), await joined(store)
        await store.leave(left)
        await lapsed(store)
        assert await store.expire_nodes(me) == [gone]
        await store.leave(gone)  # too late: it was declared dead
        now = await store.time()
        assert {found.id: found.state(now) for found in await store.nodes()} == {
            me: "alive",
            gone: "dead",
            left: "left",
        }


class OrphanConformance:
    async def test_running_jobs_of_dead_nodes(self, store: Store) -> None:
        me, gone, left, now = (
            await joined(store),
            await joined(store),
            await joined(store),
            await store.time(),
        )
        lost = await started(store, gone, job(now))
        forgotten = await started(store, left, job(now))
        await started(store, me, job(now))
        await add(store, job(now))
        await finished(store, gone, job(now - HOUR), now)
        assert await store.running_jobs(OfDeadNodes(), 10) == []
        await store.beat(gone, 1)
        await lapsed(store)
        await store.expire_nodes(me)
        await store.leave(left)
        assert sorted(await store.running_jobs(OfDeadNodes(), 10)) == sorted([lost, forgotten])

    async def test_no_more_than_asked_for(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY))
        await claim(store, request(node))
        await store.leave(node)
        seen = set()
        while orphans := await store.running_jobs(OfDeadNodes(), 4):
            assert len(orphans) <= 4
            seen |= {row.id for row in orphans}
            assert await settle(store, [loss(row, now, due_at=now + HOUR) for row in orphans]) == []
        assert len(seen) == 10

    async def test_a_lost_job_runs_elsewhere(self, store: Store) -> None:
        """A8, A9."""
        gone, now = await joined(store), await store.time()
        await started(store, gone, job(now))
        await store.leave(gone)
        [orphan] = await store.running_jobs(OfDeadNodes(), 10)
        assert await settle(store, [loss(orphan, now)]) == []
        assert await store.running_jobs(OfDeadNodes(), 10) == []
        again = await claim_one(store, await joined(store))
        assert (again.id, again.attempt, again.losses, again.failures) == (orphan.id, 2, 1, 0)

    async def test_an_orphan_keeps_its_cancel_request(self, store: Store) -> None:
        gone, now = await joined(store), await store.time()
        claimed = await started(store, gone, job(now))
        await store.cancel_job(TENANT, claimed.id, "")
        await store.leave(gone)
        [orphan] = await store.running_jobs(OfDeadNodes(), 10)
        assert orphan == claimed._replace(cancel_requested=True)

    async def test_two_reapers_settle_it_once(self, store: Store, second_store: Store) -> None:
        gone, now = await joined(store), await store.time()
        await started(store, gone, job(now))
        await store.leave(gone)
        [first], [second] = (
            await store.running_jobs(OfDeadNodes(), 10),
            await second_store.running_jobs(OfDeadNodes(), 10),
        )
        assert await settle(store, [loss(first, now)]) == []
        assert (await claim_one(store, await joined(store))).attempt == 2
        assert await settle(second_store, [loss(second, now)]) == [second.id]
        assert (await stored(store, first.id)).state is State.RUNNING

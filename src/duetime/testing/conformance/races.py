"""Two handles at once. Whatever the interleaving, one of them wins and nothing is doubled."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import UUID

from duetime.model.job import CancelReply, JobFilter, State
from duetime.model.lease import NodeId
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    TENANT,
    add,
    claim,
    death,
    expired,
    firing,
    job,
    jobs,
    joined,
    known,
    loss,
    put,
    put_schedule,
    request,
    schedule,
    settle,
    started,
    stored,
    success,
    take_leases,
)


async def drain(store: Store, node: NodeId, room: int) -> list[UUID]:
    """Claim and settle until there is nothing left."""
    seen: list[UUID] = []
    while claimed := await claim(store, request(node, room=room)):
        seen += [row.id for row in claimed]
        assert await settle(store, [success(row, row.due_at + DAY) for row in claimed]) == []
    return seen


class RaceConformance:
    async def test_a_thousand_claims_none_doubled(self, store: Store, second_store: Store) -> None:
        """C7, I5."""
        nodes = [await joined(store), await joined(second_store)]
        drafts = jobs(1_000, await store.time() - DAY)
        await store.add_jobs(drafts)
        pairs = list(zip((store, second_store), nodes, strict=True)) * 20
        answers = await asyncio.gather(*(claim(handle, request(node, room=50)) for handle, node in pairs))
        claimed = [row.id for answer in answers for row in answer]
        while rest := await claim(store, request(nodes[0], room=1_000)):
            claimed += [row.id for row in rest]
        assert Counter(claimed) == Counter(draft.id for draft in drafts)

    async def test_claims_one_at_a_time(self, store: Store, second_store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(20, now - DAY))
        handles = [store, second_store] * 30
        answers = await asyncio.gather(*(claim(handle, request(node, room=1)) for handle in handles))
        claimed = [row.id for answer in answers for row in answer] + await drain(store, node, 20)
        assert len(claimed) == len(set(claimed)) == 20

    async def test_two_workers_drain_a_queue(self, store: Store, second_store: Store) -> None:
        """I3: each job is completed once."""
        nodes = [await joined(store), await joined(second_store)]
        await store.add_jobs(jobs(1_000, await store.time() - 2 * DAY))
        seen = await asyncio.gather(drain(store, nodes[0], 40), drain(second_store, nodes[1], 30))
        assert len(seen[0]) + len(seen[1]) == len({*seen[0], *seen[1]}) == 1_000
        listed = await store.list_jobs(JobFilter(TENANT), 2_000)
        assert Counter(found.state for found in listed) == {State.SUCCEEDED: 1_000}

    async def test_worker_and_reaper_settle_the_same_attempts(
        self, store: Store, second_store: Store
    ) -> None:
        """B3: for each job one of the two is refused."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(100, now - DAY))
        held = await claim(store, request(node))
        refusals = await asyncio.gather(
            settle(store, [success(row, now) for row in held]),
            settle(second_store, [loss(row, now, due_at=now + HOUR) for row in held[::-1]]),
        )
        assert sorted([*refusals[0], *refusals[1]]) == sorted(row.id for row in held)
        waiting = await store.list_jobs(JobFilter(TENANT, states=frozenset({State.PENDING})), 200)
        assert sorted(found.id for found in waiting) == sorted(refusals[0])

    async def test_a_success_counts_though_the_job_is_asked_to_stop_meanwhile(
        self, store: Store, second_store: Store
    ) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(40, now - DAY))
        held = await claim(store, request(node))
        refused, *replies = await asyncio.gather(
            settle(store, [success(row, now) for row in held]),
            *(second_store.cancel_job(TENANT, row.id, "") for row in held[::-1]),
        )
        assert refused == []
        assert set(replies) <= {CancelReply.REQUESTED, CancelReply.FINAL}
        listed = await store.list_jobs(JobFilter(TENANT), 100)
        assert Counter(found.state for found in listed) == {State.SUCCEEDED: 40}

    async def test_cancel_and_claim(self, store: Store, second_store: Store) -> None:
        """What was cancelled never runs; what runs was asked to stop."""
        node, now = await joined(store), await store.time()
        for _ in range(20):
            draft = await add(store, job(now))
            reply, claimed = await asyncio.gather(
                second_store.cancel_job(TENANT, draft.id, ""), claim(store, request(node))
            )
            found = await stored(store, draft.id)
            expected = (
                (CancelReply.REQUESTED, State.RUNNING, True)
                if claimed
                else (CancelReply.CANCELLED, State.CANCELLED, False)
            )
            assert (reply, found.state, found.cancel_requested) == expected

    async def test_move_and_claim(self, store: Store, second_store: Store) -> None:
        node, now = await joined(store), await store.time()
        for _ in range(20):
            draft = await add(store, job(now))
            moved, claimed = await asyncio.gather(
                second_store.reschedule_job(TENANT, draft.id, now + DAY, None), claim(store, request(node))
            )
            assert moved is (claimed == [])

    async def test_two_planners_fire_the_same_step(self, store: Store, second_store: Store) -> None:
        """B5, B11."""
        now = await store.time()
        made = [await put(store, schedule(f"{number}"), now) for number in range(20)]
        steps = [firing(each, now + HOUR, now) for each in made]
        applied = await asyncio.gather(store.fire(steps), second_store.fire(steps[::-1]))
        assert sum(applied) == 20
        assert {(await known(store, f"{number}")).runs for number in range(20)} == {1}
        assert len(await store.list_jobs(JobFilter(TENANT), 100)) == 20

    async def test_edit_and_fire(self, store: Store, second_store: Store) -> None:
        """Either the step came first and its job was withdrawn, or it was refused: no job of the old
        definition is left."""
        now = await store.time()
        for number in range(20):
            made = await put(store, schedule(f"{number}"), now + HOUR)
            step = firing(made, now + DAY, now + HOUR)
            await asyncio.gather(
                store.fire([step]), put_schedule(second_store, schedule(f"{number}"), now + HOUR, None)
            )
            found = await known(store, f"{number}")
            assert (found.version, found.runs, found.next_fire_time) == (2, 0, now + HOUR)
        assert await store.list_jobs(JobFilter(TENANT), 100) == []

    async def test_two_authors_of_one_version(self, store: Store, second_store: Store) -> None:
        made = await put(store, schedule(), 1)
        for version in range(made.version, made.version + 10):
            answers = await asyncio.gather(
                put_schedule(store, schedule(owner="one"), 1, version),
                put_schedule(second_store, schedule(owner="two"), 1, version),
            )
            [winner] = [answer for answer in answers if answer is not None]
            assert await known(store) == winner

    async def test_two_authors_of_one_name(self, store: Store, second_store: Store) -> None:
        for number in range(10):
            drafts = schedule(f"{number}"), schedule(f"{number}")
            answers = await asyncio.gather(
                put_schedule(store, drafts[0], 1, 0), put_schedule(second_store, drafts[1], 1, 0)
            )
            [winner] = [answer for answer in answers if answer is not None]
            assert await known(store, f"{number}") == winner

    async def test_two_nodes_want_the_same_leases(self, store: Store, second_store: Store) -> None:
        """I7."""
        first, second = await joined(store), await joined(second_store)
        names = [f"segment/{number}" for number in range(64)]
        taken = await asyncio.gather(
            take_leases(store, first, names), take_leases(second_store, second, names[::-1])
        )
        assert sorted([*taken[0], *taken[1]]) == sorted(names)

    async def test_of_two_nodes_one_expires_a_third(self, store: Store, second_store: Store) -> None:
        first, second, gone = await joined(store), await joined(second_store), await expired(store)
        found = await asyncio.gather(store.expire_nodes(first), second_store.expire_nodes(second))
        assert [*found[0], *found[1]] == [gone]

    async def test_joining_at_once(self, store: Store, second_store: Store) -> None:
        ids = await asyncio.gather(*(joined(handle) for handle in (store, second_store) * 10))
        assert len(set(ids)) == 20

    async def test_two_operators_deal_with_one_dead_letter(self, store: Store, second_store: Store) -> None:
        node, now = await joined(store), await store.time()
        for _ in range(10):
            claimed = await started(store, node, job(now))
            assert await settle(store, [death(claimed, now)]) == []
            answers = await asyncio.gather(
                store.resolve_dead_job(TENANT, claimed.id, job(now + DAY)),
                second_store.resolve_dead_job(TENANT, claimed.id, None),
            )
            assert sorted(answers) == [False, True]

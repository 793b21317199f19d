"""Claims of named jobs, and the listing of due jobs: what a dispatcher and its workers ask for."""

from __future__ import annotations

from dataclasses import replace

from duetime.model.ids import EVERY_SEGMENT, segment_of
from duetime.model.instant import Micros
from duetime.model.job import Claimed, JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.limit import Queue, Rate
from duetime.queue import Ticket
from duetime.store import ClaimRequest, Due, Lane, Store
from duetime.testing.conformance.drafts import (
    HOUR,
    LANE,
    MINUTE,
    PRIORITY,
    QUEUE,
    TARGET,
    add,
    claim_one,
    expired,
    job,
    jobs,
    joined,
    limit,
    new_id,
    of_schedule,
    request,
    retry,
    set_limits,
    settle,
    stored,
    success,
)


def named(node: NodeId, *tickets: Ticket | JobDraft, prefetch: Micros = 0, room: int = 100) -> ClaimRequest:
    given = tuple(ticket if isinstance(ticket, Ticket) else Ticket(ticket.id, 0) for ticket in tickets)
    return ClaimRequest(node, (), (TARGET,), room, prefetch, tickets=given)


async def claim_named(store: Store, wanted: ClaimRequest) -> list[Claimed]:
    return (await store.claim(wanted)).jobs


async def listed(store: Store, *lanes: Lane, prefetch: Micros = 0, room: int = 100) -> Due:
    wanted = request(NodeId(0), *lanes, targets=(), prefetch=prefetch, room=room, segments=EVERY_SEGMENT)
    return await store.due_jobs(wanted)


class TicketConformance:
    async def test_named_jobs_start_in_the_order_of_their_tickets(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = [
            job(now - age * MINUTE, priority=priority, tenant=tenant, queue=queue)
            for age, priority, tenant, queue in ((1, 3, "a", "x"), (3, 9, "b", "y"), (2, 0, "a", "y"))
        ]
        await store.add_jobs([*drafts, *jobs(5, now - HOUR)])
        claimed = await claim_named(store, named(node, *drafts))
        assert [(row.id, row.attempt) for row in claimed] == [(draft.id, 1) for draft in drafts]
        found = await stored(store, drafts[0].id, "a")
        assert (found.state, found.node, found.attempt) == (State.RUNNING, node, 1)
        assert [row.payload for row in claimed] == [draft.payload for draft in drafts]

    async def test_ticket_of_another_attempt_claims_nothing(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = await add(store, job(now))
        assert await claim_named(store, named(node, Ticket(draft.id, 1))) == []
        [first] = await claim_named(store, named(node, draft))
        assert await claim_named(store, named(node, draft, Ticket(draft.id, 1))) == []
        await settle(store, [retry(first, now, now)])
        assert await claim_named(store, named(node, draft)) == []
        [again] = await claim_named(store, named(node, Ticket(draft.id, 1), draft))
        assert again.attempt == 2

    async def test_duplicate_tickets_start_a_job_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(5))
        plain, limited = await add(store, job(now)), await add(store, job(now, limit_key="key"))
        claimed = await claim_named(store, named(node, plain, limited, plain, limited, Ticket(plain.id, 7)))
        assert [row.id for row in claimed] == [plain.id, limited.id]

    async def test_unknown_and_finished_jobs_are_passed_over(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        past = await add(store, job(now))
        [done] = await claim_named(store, named(node, past))
        await settle(store, [success(done, now)])
        draft = await add(store, job(now))
        tickets = (Ticket(new_id(now), 0), Ticket(past.id, 1), Ticket(past.id, 0))
        assert [row.id for row in await claim_named(store, named(node, *tickets, draft))] == [draft.id]

    async def test_named_job_does_not_start_early(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        plain, limited = job(now + MINUTE), job(now + MINUTE, limit_key="key")
        await store.add_jobs([plain, limited])
        assert await claim_named(store, named(node, plain, limited)) == []
        claimed = await claim_named(store, named(node, plain, limited, prefetch=2 * MINUTE))
        assert {row.id for row in claimed} == {plain.id, limited.id}

    async def test_named_jobs_fill_no_more_than_the_room(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = [*jobs(2, now), *jobs(3, now, limit_key="key")]
        await store.add_jobs(drafts)
        assert len(await claim_named(store, named(node, *drafts, room=3))) == 3
        assert await claim_named(store, named(node, *drafts, room=0)) == []

    async def test_named_job_of_another_target_is_left(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = [job(now, target="other"), job(now, target="other", limit_key="key")]
        await store.add_jobs(drafts)
        assert await claim_named(store, named(node, *drafts)) == []

    async def test_node_whose_lease_has_ended_claims_no_named_job(self, store: Store) -> None:
        now = await store.time()
        drafts = [await add(store, job(now)), await add(store, job(now, limit_key="key"))]
        assert await claim_named(store, named(await expired(store), *drafts)) == []

    async def test_named_job_of_a_paused_queue_is_left(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = [job(now), job(now, limit_key="key")]
        await store.add_jobs(drafts)
        await store.set_queue(Queue(QUEUE, paused=True))
        assert await claim_named(store, named(node, *drafts)) == []
        assert (await listed(store)) == ([], None)

    async def test_named_jobs_obey_the_limit_of_their_queue(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = jobs(4, now)
        await store.add_jobs(drafts)
        await store.set_queue(Queue(QUEUE, max_running=2))
        assert len(await claim_named(store, named(node, *drafts))) == 2
        assert await claim_named(store, named(node, *drafts)) == []

    async def test_named_jobs_obey_the_rate_of_their_queue(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = jobs(4, now)
        await store.add_jobs(drafts)
        await store.set_queue(Queue(QUEUE, rate=Rate(2, HOUR)))
        assert len(await claim_named(store, named(node, *drafts))) == 2
        assert await claim_named(store, named(node, *drafts)) == []

    async def test_named_jobs_obey_the_limit_of_their_key(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(1))
        drafts = jobs(3, now, limit_key="key")
        await store.add_jobs(drafts)
        [first] = await claim_named(store, named(node, *drafts))
        assert first.permit is not None
        assert await claim_named(store, named(node, *drafts)) == []
        await settle(store, [success(first, now)])
        assert len(await claim_named(store, named(node, *drafts))) == 1

    async def test_named_jobs_obey_the_rate_of_their_key(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(rate=Rate(1, HOUR)))
        drafts = jobs(3, now, limit_key="key")
        await store.add_jobs(drafts)
        assert len(await claim_named(store, named(node, *drafts))) == 1
        assert await claim_named(store, named(node, *drafts)) == []

    async def test_named_jobs_of_a_schedule_do_not_overlap(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        schedule_id = new_id(0)
        first, second, third = (of_schedule(schedule_id, now + at, "skip") for at in (-2, -1, 0))
        await store.add_jobs([first, second])
        assert [row.id for row in await claim_named(store, named(node, first, second))] == [first.id]
        assert (await stored(store, second.id)).state is State.SKIPPED
        await add(store, third)
        assert await claim_named(store, named(node, third)) == []
        assert (await stored(store, third.id)).state is State.SKIPPED

    async def test_two_workers_with_the_same_tickets_share_them(
        self, store: Store, second_store: Store
    ) -> None:
        node, other, now = await joined(store), await joined(store), await store.time()
        drafts = [*jobs(20, now), *jobs(5, now, limit_key="key")]
        await store.add_jobs(drafts)
        first = await claim_named(store, named(node, *drafts, room=10))
        second = await claim_named(second_store, named(other, *drafts))
        assert len({row.id for row in first + second}) == len(first) + len(second) == len(drafts)


class DueJobsConformance:
    async def test_due_jobs_are_listed_and_stay_pending(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        plain = await add(store, job(now - 2, target="unknown here"))
        limited = await add(store, job(now - 1, limit_key="key"))
        later = await add(store, job(now + HOUR))
        found = await listed(store)
        lane = (QUEUE, PRIORITY, plain.tenant)
        assert found.jobs == [
            (plain.id, 0, *lane, plain.due_at, False),
            (limited.id, 0, *lane, limited.due_at, True),
        ]
        assert found.next_at == later.due_at
        assert (await claim_one(store, node)).id == limited.id
        assert [found.id for found in (await listed(store)).jobs] == [plain.id]

    async def test_listed_jobs_come_lane_by_lane_oldest_first(self, store: Store) -> None:
        now = await store.time()
        urgent, calm = jobs(3, now - MINUTE, priority=9), jobs(3, now - HOUR, priority=1)
        await store.add_jobs([*reversed(calm), *reversed(urgent)])
        found = await listed(store, Lane(QUEUE, 9, 0), Lane(QUEUE, 1, 0), room=2)
        assert [due.id for due in found.jobs] == [draft.id for draft in urgent[:2] + calm[:2]]

    async def test_listing_looks_ahead_by_the_prefetch(self, store: Store) -> None:
        now = await store.time()
        near = await add(store, job(now + MINUTE))
        assert (await listed(store)) == ([], near.due_at)
        assert [due.id for due in (await listed(store, prefetch=HOUR)).jobs] == [near.id]

    async def test_listing_begins_at_the_lower_bound(self, store: Store) -> None:
        """Except for jobs that need a permit: they may be claimable long after they were due."""
        now = await store.time()
        old, new = await add(store, job(now - HOUR)), await add(store, job(now))
        limited = await add(store, job(now - HOUR, limit_key="key"))
        found = await listed(store, LANE._replace(low=now - MINUTE))
        assert {due.id for due in found.jobs} == {new.id, limited.id}
        assert old.id in {due.id for due in (await listed(store)).jobs}

    async def test_listed_job_has_the_number_of_its_attempts(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = await add(store, job(now))
        claimed = await claim_one(store, node)
        await settle(store, [retry(claimed, now, now)])
        [due] = (await listed(store)).jobs
        assert due.ticket == Ticket(draft.id, 1)

    async def test_waiting_jobs_are_not_listed(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(1))
        drafts = jobs(2, now, limit_key="key")
        await store.add_jobs(drafts)
        await claim_named(store, named(node, *drafts))
        assert (await listed(store)).jobs == []

    async def test_each_segment_lists_its_own_jobs(self, store: Store) -> None:
        now = await store.time()
        drafts = [*jobs(40, now - HOUR), *jobs(40, now - HOUR, limit_key="key"), *jobs(40, now + HOUR)]
        await store.add_jobs(drafts)
        mine = (3, 17, 63, 20, 21, 22, 23)
        wanted = replace(request(NodeId(0)), segments=mine)
        found = await store.due_jobs(wanted)
        due = {draft.id for draft in drafts if draft.due_at <= now and segment_of(draft.id) in mine}
        assert {row.id for row in found.jobs} <= due
        assert {row.id for row in found.jobs if not row.needs_permit} == {
            draft.id for draft in drafts[:40] if draft.id in due
        }
        ahead = [draft.due_at for draft in drafts[80:] if segment_of(draft.id) in mine]
        assert found.next_at == min(ahead, default=None)

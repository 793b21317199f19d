"""claim: a job starts from its due time on, by the store's clock, to the microsecond."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, JobDraft
from duetime.model.lease import NodeId
from duetime.store import ClaimRequest, Lane, Store
from duetime.testing.conformance.drafts import (
    LANE,
    MINUTE,
    PRIORITY,
    add,
    job,
    joined,
    new_id,
    of_schedule,
    request,
    stored,
)
from duetime.testing.conformance.tickets import named

SPAN = 1_000  # microseconds in which jobs fall due
STEP = SPAN // 4
TRIES = 50
SOON = SECOND // 50
TWO_LANES = (LANE, Lane("other", PRIORITY, 0))
KINDS: dict[str, Callable[[Micros], JobDraft]] = {
    "plain": job,
    "limit key": lambda due_at: job(due_at, limit_key="key"),
    "overlap": lambda due_at: of_schedule(new_id(0), due_at, "queue"),
}


def by_lane(node: NodeId, draft: JobDraft) -> ClaimRequest:
    return request(node)


def by_two_lanes(node: NodeId, draft: JobDraft) -> ClaimRequest:
    return request(node, *TWO_LANES)


class DueTimeConformance:
    @pytest.mark.parametrize("lanes", [(LANE,), TWO_LANES], ids=["one lane", "two lanes"])
    @pytest.mark.parametrize("kind", KINDS)
    async def test_claim_takes_what_is_due_by_its_end_and_nothing_else(
        self, store: Store, kind: str, lanes: tuple[Lane, ...]
    ) -> None:
        """I4. The end of a claim moves over jobs that are due shortly after one another, until it takes some
        of them and leaves others. Jobs that need no permit start at the instant that decides: for these the
        test is exact to the microsecond."""
        node, delay = await joined(store), 20 * STEP
        for _ in range(TRIES):
            first = await store.time() + MINUTE
            distance = 1 if kind == "plain" else 25
            drafts = [KINDS[kind](due_at) for due_at in range(first, first + SPAN, distance)]
            await store.add_jobs(drafts)
            claimed: list[Claimed] = []
            before = after = prefetch = 0
            while not claimed:
                before = await store.time()
                prefetch = first - before - delay
                claimed, _ = await store.claim(request(node, *lanes, room=SPAN, prefetch=prefetch))
                after = await store.time()
                delay -= STEP
            taken = {row.id for row in claimed}
            if kind == "plain":  # the others start after they were chosen
                before = after = (await stored(store, claimed[0].id)).claimed_at or 0
            assert taken >= {draft.id for draft in drafts if draft.due_at <= before + prefetch}
            assert taken <= {draft.id for draft in drafts if draft.due_at <= after + prefetch}
            if len(taken) < len(drafts):
                return
            delay += 4 * SPAN
        raise AssertionError("no claim ended between two of the jobs")

    @pytest.mark.parametrize("claim_of", [by_lane, by_two_lanes, named])
    @pytest.mark.parametrize("kind", KINDS)
    async def test_job_starts_when_it_is_due_and_not_before(
        self, store: Store, kind: str, claim_of: Callable[[NodeId, JobDraft], ClaimRequest]
    ) -> None:
        """I4. The store's clock is read before and after each claim."""
        node, ahead, refusals = await joined(store), SOON, 0
        while not refusals:  # on a busy machine the first claim may come too late to be refused
            draft = await add(store, KINDS[kind](await store.time() + ahead))
            claimed: list[Claimed] = []
            before = after = 0
            while not claimed:
                assert before < draft.due_at, f"due at {draft.due_at}, and not claimed at {before}"
                before = await store.time()
                claimed, _ = await store.claim(claim_of(node, draft))
                after = await store.time()
                refusals += not claimed
            assert after >= draft.due_at, f"due at {draft.due_at}, and claimed before {after}"
            ahead *= 4

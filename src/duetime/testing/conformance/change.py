"""What callers may still do to a job: cancel it, move it, deal with it when it is a dead letter."""

from __future__ import annotations

import pytest

from duetime.model.job import CancelReply, Ending, JobFilter, State
from duetime.model.settle import skip
from duetime.store import Lane, Store
from duetime.testing.conformance.drafts import (
    HOUR,
    QUEUE,
    TENANT,
    add,
    claim,
    claim_one,
    ended,
    finished,
    job,
    joined,
    live_counts,
    new_id,
    request,
    retry,
    settle,
    started,
    stored,
    success,
)


class CancelConformance:
    async def test_a_pending_job_ends_as_cancelled(self, store: Store) -> None:
        draft = await add(store, job(await store.time() + HOUR))
        before = await store.time()
        assert await store.cancel_job(TENANT, draft.id, "not wanted") is CancelReply.CANCELLED
        found = await stored(store, draft.id)
        assert (found.state, found.error, found.attempt) == (State.CANCELLED, "not wanted", 0)
        assert found.finished_at is not None
        assert before <= found.finished_at <= await store.time()

    async def test_a_cancelled_job_is_never_claimed(self, store: Store) -> None:
        draft = await add(store, job(await store.time()))
        await store.cancel_job(TENANT, draft.id, "")
        assert await claim(store, request(await joined(store))) == []
        assert await live_counts(store) == {}

    async def test_a_running_job_is_marked_and_runs_on(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert not (await stored(store, claimed.id)).cancel_requested
        assert await store.cancel_job(TENANT, claimed.id, "not wanted") is CancelReply.REQUESTED
        found = await stored(store, claimed.id)
        assert (found.state, found.cancel_requested, found.attempt) == (State.RUNNING, True, 1)
        assert found.error == "not wanted"
        assert await store.cancel_job(TENANT, claimed.id, "again") is CancelReply.REQUESTED
        assert await settle(store, [success(claimed, now)]) == []

    async def test_reason_of_a_requested_cancellation_is_kept(self, store: Store) -> None:
        """Also if the attempt that was to stop ended in another way, and the next one is cancelled."""
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.cancel_job(TENANT, claimed.id, "not wanted")
        assert await settle(store, [retry(claimed, now, now, error="it failed")]) == []
        again = await claim_one(store, node)
        assert again.cancel_requested
        stopped = ended(again, State.CANCELLED, Ending.CANCELLED, now, error="cancelled before it started")
        assert await settle(store, [stopped]) == []
        assert (await stored(store, claimed.id)).error == "not wanted"
        errors = [attempt.error for attempt in await store.list_attempts(claimed.id)]
        assert errors == ["it failed", "cancelled before it started"]

    async def test_error_of_a_job_that_dies_although_it_was_to_stop_is_kept(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.cancel_job(TENANT, claimed.id, "not wanted")
        assert await settle(store, [ended(claimed, State.DEAD, Ending.FAILED, now, error="it failed")]) == []
        assert (await stored(store, claimed.id)).error == "it failed"

    async def test_a_retry_that_waits_ends_as_cancelled(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [retry(claimed, now, now)]) == []
        assert await store.cancel_job(TENANT, claimed.id, "enough") is CancelReply.CANCELLED
        found = await stored(store, claimed.id)
        assert (found.state, found.attempt, found.failures) == (State.CANCELLED, 1, 1)
        assert await claim(store, request(node)) == []

    async def test_a_finished_job_stays_as_it_ended(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = await finished(store, node, job(now), now)
        assert await store.cancel_job(TENANT, draft.id, "late") is CancelReply.FINAL
        assert (await stored(store, draft.id)).state is State.SUCCEEDED

    async def test_a_repeated_cancel_finds_it_final(self, store: Store) -> None:
        draft = await add(store, job(await store.time()))
        await store.cancel_job(TENANT, draft.id, "first")
        assert await store.cancel_job(TENANT, draft.id, "second") is CancelReply.FINAL
        assert (await stored(store, draft.id)).error == "first"

    async def test_an_unknown_job_is_missing(self, store: Store) -> None:
        draft = await add(store, job(await store.time()))
        assert await store.cancel_job(TENANT, new_id(0), "") is CancelReply.MISSING
        assert await store.cancel_job("other", draft.id, "") is CancelReply.MISSING
        assert (await stored(store, draft.id)).state is State.PENDING

    async def test_cancelling_frees_the_unique_key(self, store: Store) -> None:
        now = await store.time()
        draft = await add(store, job(now, unique_key="key"))
        await store.cancel_job(TENANT, draft.id, "")
        await add(store, job(now, unique_key="key"))


class RescheduleConformance:
    async def test_a_job_put_off_is_not_due(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = await add(store, job(now))
        assert await store.reschedule_job(TENANT, draft.id, now + HOUR, None)
        assert await claim(store, request(node)) == []
        assert (await store.due_jobs(request(node))).next_at == now + HOUR
        found = await stored(store, draft.id)
        assert (found.fire_time, found.due_at, found.priority) == (now, now + HOUR, draft.priority)

    async def test_a_job_brought_forward_is_due(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = await add(store, job(now + HOUR))
        assert await store.reschedule_job(TENANT, draft.id, now, None)
        assert (await claim_one(store, node)).due_at == now
        assert await claim(store, request(node, prefetch=2 * HOUR)) == []

    async def test_a_job_of_another_priority_is_in_another_lane(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = await add(store, job(now))
        assert await store.reschedule_job(TENANT, draft.id, None, 9)
        assert await claim(store, request(node)) == []
        [claimed] = await claim(store, request(node, Lane(QUEUE, 9, 0)))
        assert (claimed.id, claimed.priority, claimed.due_at) == (draft.id, 9, now)

    async def test_changing_nothing_is_a_change(self, store: Store) -> None:
        draft = await add(store, job(await store.time()))
        assert await store.reschedule_job(TENANT, draft.id, None, None)
        assert (await claim_one(store, await joined(store))).id == draft.id

    async def test_only_pending_jobs_move(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now))
        done = await finished(store, node, job(now), now)
        foreign = await add(store, job(now, tenant="other"))
        for job_id in (running.id, done.id, foreign.id, new_id(0)):
            assert not await store.reschedule_job(TENANT, job_id, now + HOUR, 1)
        found = [
            await stored(store, running.id),
            await stored(store, done.id),
            await stored(store, foreign.id, "other"),
        ]
        assert [(moved.due_at, moved.priority) for moved in found] == [(now, running.priority)] * 3


class DeadLetterConformance:
    async def test_a_dead_letter_is_retried_as_a_new_job(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        dead = await finished(store, node, job(now), now, State.DEAD)
        again = job(now, retry_of=dead.id)
        assert await store.resolve_dead_job(TENANT, dead.id, again)
        found = await stored(store, dead.id)
        assert (found.state, found.disposition) == (State.DEAD, "retried")
        assert (await stored(store, again.id)).retry_of == dead.id
        assert (await claim_one(store, node)).id == again.id

    async def test_a_dead_letter_is_dealt_with_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        dead = await finished(store, node, job(now), now, State.DEAD)
        assert await store.resolve_dead_job(TENANT, dead.id, job(now))
        second = job(now)
        assert not await store.resolve_dead_job(TENANT, dead.id, second)
        assert not await store.resolve_dead_job(TENANT, dead.id, None)
        assert await store.get_job(TENANT, second.id) is None
        assert (await stored(store, dead.id)).disposition == "retried"

    async def test_a_discarded_dead_letter_stays_dead(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        dead = await finished(store, node, job(now), now, State.DEAD)
        assert await store.resolve_dead_job(TENANT, dead.id, None)
        again = job(now)
        assert not await store.resolve_dead_job(TENANT, dead.id, again)
        assert await store.get_job(TENANT, again.id) is None
        found = await stored(store, dead.id)
        assert (found.state, found.disposition) == (State.DEAD, "discarded")

    async def test_a_skipped_job_is_retried_once_and_not_discarded(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        skipped = await started(store, node, job(now))
        await settle(store, [skip(skipped, "overlap", now)])
        assert not await store.resolve_dead_job(TENANT, skipped.id, None)
        again, second = job(now, retry_of=skipped.id), job(now)
        assert await store.resolve_dead_job(TENANT, skipped.id, again)
        assert not await store.resolve_dead_job(TENANT, skipped.id, second)
        assert await store.get_job(TENANT, second.id) is None
        found = await stored(store, skipped.id)
        assert (found.state, found.disposition) == (State.SKIPPED, "retried")
        listed = await store.list_jobs(JobFilter(TENANT, states=frozenset({State.SKIPPED})), 10)
        assert [one.id for one in listed] == [skipped.id]
        assert (await claim_one(store, node)).id == again.id

    @pytest.mark.parametrize("kind", ["succeeded", "running", "pending", "unknown", "foreign"])
    async def test_anything_else_is_no_dead_letter(self, store: Store, kind: str) -> None:
        node, now = await joined(store), await store.time()
        draft = job(now, tenant="other" if kind == "foreign" else TENANT)
        match kind:
            case "succeeded":
                await finished(store, node, draft, now)
            case "running":
                await started(store, node, draft)
            case "pending":
                await add(store, draft)
            case "foreign":
                await finished(store, node, draft, now, State.DEAD)
        again = job(now)
        assert not await store.resolve_dead_job(TENANT, draft.id, again)
        assert not await store.resolve_dead_job(TENANT, draft.id, None)
        assert await store.get_job(TENANT, again.id) is None

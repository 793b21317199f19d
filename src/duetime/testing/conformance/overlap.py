"""Jobs of a schedule that runs one at a time."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from duetime.model.job import JobFilter, State
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    MINUTE,
    TENANT,
    add,
    claim,
    claim_one,
    job,
    joined,
    new_id,
    of_schedule,
    release,
    request,
    retry,
    settle,
    started,
    stored,
    success,
)

POLICIES = ["queue", "skip", "cancel_previous"]


class OverlapConformance:
    @pytest.mark.parametrize("overlap", POLICIES)
    async def test_the_oldest_fire_starts_alone(self, store: Store, overlap: str) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        drafts = [of_schedule(schedule_id, now - age * MINUTE, overlap) for age in (1, 3, 2)]
        await store.add_jobs(drafts)
        assert (await claim_one(store, node)).id == drafts[1].id
        assert await claim(store, request(node)) == []

    @pytest.mark.parametrize("overlap", POLICIES)
    async def test_the_oldest_fire_starts_even_if_it_fell_due_last(self, store: Store, overlap: str) -> None:
        """Jitter: both are due, and the later fire came out first."""
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        old = of_schedule(schedule_id, now - MINUTE, overlap, fire_time=now - 2 * HOUR)
        young = of_schedule(schedule_id, now - 2 * MINUTE, overlap, fire_time=now - HOUR)
        await store.add_jobs([young, old])
        assert (await claim_one(store, node)).id == old.id
        assert await claim(store, request(node)) == []

    @pytest.mark.parametrize("overlap", POLICIES)
    async def test_a_later_fire_does_not_wait_for_one_that_is_not_due(
        self, store: Store, overlap: str
    ) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        put_off = of_schedule(schedule_id, now + HOUR, overlap, fire_time=now - 2 * HOUR)
        due = of_schedule(schedule_id, now, overlap, fire_time=now - HOUR)
        await store.add_jobs([put_off, due])
        assert (await claim_one(store, node)).id == due.id
        assert (await stored(store, put_off.id)).state is State.PENDING

    @pytest.mark.parametrize("overlap", POLICIES)
    async def test_the_worker_learns_of_the_policy(self, store: Store, overlap: str) -> None:
        node, now = await joined(store), await store.time()
        draft = await add(store, of_schedule(new_id(0), now, overlap))
        claimed = await claim_one(store, node)
        assert (claimed.id, claimed.attempt, claimed.overlap, claimed.schedule_id) == (
            draft.id,
            1,
            overlap,
            draft.schedule_id,
        )

    async def test_queue_waits_until_the_first_has_finished(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        drafts = [of_schedule(schedule_id, now - age * MINUTE, "queue") for age in (3, 2, 1)]
        await store.add_jobs(drafts)
        for draft in drafts:
            claimed = await claim_one(store, node)
            assert (claimed.id, claimed.cancel_requested) == (draft.id, False)
            assert await claim(store, request(node)) == []
            assert await settle(store, [success(claimed, now)]) == []

    async def test_skip_is_recorded_with_its_reason(self, store: Store) -> None:
        """I10."""
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - MINUTE, "skip"))
        second = await add(store, of_schedule(schedule_id, now, "skip"))
        assert await claim(store, request(node)) == []
        found = await stored(store, second.id)
        assert (found.state, found.attempt) == (State.SKIPPED, 0)
        assert found.error is not None
        assert found.error.startswith("overlap: ")
        assert found.finished_at is not None
        assert await settle(store, [success(first, now)]) == []
        assert await claim(store, request(node)) == []

    async def test_skip_does_not_skip_what_is_not_due_yet(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now, "skip"))
        ahead = await add(store, of_schedule(schedule_id, now + MINUTE, "skip"))
        assert await claim(store, request(node, prefetch=HOUR)) == []
        assert (await stored(store, ahead.id)).state is State.PENDING
        assert await settle(store, [success(first, now)]) == []
        assert (await claim_one(store, node, prefetch=HOUR)).id == ahead.id

    async def test_cancel_previous_asks_the_first_to_stop_and_waits(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - MINUTE, "cancel_previous"))
        second = await add(store, of_schedule(schedule_id, now, "cancel_previous"))
        assert await claim(store, request(node)) == []
        stopping = await stored(store, first.id)
        assert (stopping.cancel_requested, stopping.error) == (True, "a later job of its schedule starts")
        assert (await store.beat(node, HOUR)).cancels == (first.id,)
        assert (await stored(store, second.id)).state is State.PENDING
        assert await settle(store, [success(first, now)]) == []
        claimed = await claim_one(store, node)
        assert (claimed.id, claimed.cancel_requested) == (second.id, False)

    async def test_cancel_previous_leaves_the_first_alone_until_it_is_due(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now, "cancel_previous"))
        await add(store, of_schedule(schedule_id, now + MINUTE, "cancel_previous"))
        assert await claim(store, request(node, prefetch=HOUR)) == []
        assert not (await stored(store, first.id)).cancel_requested

    @pytest.mark.parametrize("overlap", POLICIES)
    async def test_a_retry_that_waits_is_still_in_the_way(self, store: Store, overlap: str) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - MINUTE, overlap))
        assert await settle(store, [retry(first, now + DAY, now)]) == []
        second = await add(store, of_schedule(schedule_id, now, overlap))
        assert (await store.claim(request(node))).jobs == []
        assert (await stored(store, second.id)).state is (
            State.SKIPPED if overlap == "skip" else State.PENDING
        )
        assert (await stored(store, first.id)).cancel_requested is (overlap == "cancel_previous")

    async def test_cancel_previous_does_not_wait_for_a_retry_to_fall_due(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - MINUTE, "cancel_previous"))
        assert await settle(store, [retry(first, now + DAY, now)]) == []
        second = await add(store, of_schedule(schedule_id, now, "cancel_previous"))
        again = await claim_one(store, node)
        assert (again.id, again.cancel_requested) == (first.id, True)  # for its worker to end it
        assert await settle(store, [success(again, now)]) == []
        assert (await claim_one(store, node)).id == second.id

    @pytest.mark.parametrize("overlap", POLICIES)
    async def test_a_retry_is_not_in_its_own_way(self, store: Store, overlap: str) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - MINUTE, overlap))
        await add(store, of_schedule(schedule_id, now + DAY, overlap))
        assert await settle(store, [retry(first, now, now)]) == []
        again = await claim_one(store, node)
        assert (again.id, again.attempt) == (first.id, 2)

    async def test_a_job_given_back_unstarted_goes_first(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - MINUTE, "queue"))
        await add(store, of_schedule(schedule_id, now, "queue"))
        assert await settle(store, [release(first, now)]) == []
        assert (await claim_one(store, node)).id == first.id

    @pytest.mark.parametrize("overlap", POLICIES)
    async def test_a_retry_goes_on_before_an_older_fire(self, store: Store, overlap: str) -> None:
        """Both are due, but the retry has started: were the older fire to begin, two would be under way."""
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - MINUTE, overlap))
        assert await settle(store, [retry(first, now - 2 * HOUR, now)]) == []
        older = await add(store, of_schedule(schedule_id, now - HOUR, overlap))
        assert (await claim_one(store, node)).id == first.id
        assert await claim(store, request(node)) == []
        assert (await stored(store, older.id)).attempt == 0

    async def test_a_cancelled_retry_makes_way(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - MINUTE, "queue"))
        second = await add(store, of_schedule(schedule_id, now, "queue"))
        assert await settle(store, [retry(first, now + DAY, now)]) == []
        assert await claim(store, request(node)) == []
        await store.cancel_job(TENANT, first.id, "make way")
        assert (await claim_one(store, node)).id == second.id

    async def test_a_waiting_job_can_be_cancelled_and_moved(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - HOUR, "queue"))
        waiting = [of_schedule(schedule_id, now - age * MINUTE, "queue") for age in (3, 2, 1)]
        await store.add_jobs(waiting)
        assert await claim(store, request(node)) == []
        await store.cancel_job(TENANT, waiting[0].id, "")
        assert await store.reschedule_job(TENANT, waiting[1].id, now + DAY, None)
        assert await settle(store, [success(first, now)]) == []
        assert (await claim_one(store, node)).id == waiting[2].id

    async def test_any_started_job_of_the_schedule_is_in_the_way(self, store: Store) -> None:
        """The schedule was edited from `allow` while one of its jobs ran."""
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(schedule_id, now - MINUTE, None))
        second = await add(store, of_schedule(schedule_id, now, "queue"))
        assert await claim(store, request(node)) == []
        assert await settle(store, [success(first, now)]) == []
        assert (await claim_one(store, node)).id == second.id

    async def test_a_job_that_starts_in_the_same_claim_is_in_the_way(self, store: Store) -> None:
        """The schedule was edited from `allow` while one of its jobs was due."""
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = of_schedule(schedule_id, now - MINUTE, None)
        second = of_schedule(schedule_id, now, "queue")
        await store.add_jobs([first, second])
        started_first = await claim_one(store, node)
        assert started_first.id == first.id
        assert await claim(store, request(node)) == []
        assert await settle(store, [success(started_first, now)]) == []
        assert (await claim_one(store, node)).id == second.id

    @pytest.mark.parametrize("overlap", ["queue", "cancel_previous"])
    async def test_a_retry_waits_for_a_job_that_started_before_the_schedule_was_edited(
        self, store: Store, overlap: str
    ) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        retried = await started(store, node, of_schedule(schedule_id, now - HOUR, overlap))
        assert await settle(store, [retry(retried, now - MINUTE, now)]) == []
        other = await started(store, node, of_schedule(schedule_id, now - DAY, None))
        assert await claim(store, request(node)) == []
        assert await settle(store, [success(other, now)]) == []
        assert (await claim_one(store, node)).id == retried.id

    async def test_jobs_that_may_overlap_do(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        await store.add_jobs([of_schedule(schedule_id, now - age, None) for age in range(5)])
        assert len(await claim(store, request(node))) == 5

    async def test_schedules_do_not_hold_up_one_another(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = [of_schedule(new_id(0), now, overlap) for overlap in POLICIES * 5]
        await store.add_jobs([*drafts, job(now)])
        assert len(await claim(store, request(node))) == 16

    async def test_a_node_that_cannot_run_it_does_not_judge_it(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        await started(store, node, of_schedule(schedule_id, now, "skip"))
        waiting = await add(store, of_schedule(schedule_id, now, "skip", target="elsewhere"))
        assert await claim(store, request(node)) == []
        assert (await stored(store, waiting.id)).state is State.PENDING

    async def test_room_counts_them(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([of_schedule(new_id(0), now, "queue") for _ in range(5)])
        assert [len(await claim(store, request(node, room=3))) for _ in range(3)] == [3, 2, 0]

    @pytest.mark.parametrize("overlap", POLICIES)
    async def test_of_two_handles_one_starts_a_job_of_the_schedule(
        self, store: Store, second_store: Store, overlap: str
    ) -> None:
        """C7: twenty schedules, four jobs each, four claimers."""
        node, now = await joined(store), await store.time()
        schedule_ids = [new_id(0) for _ in range(20)]
        await store.add_jobs(
            [of_schedule(schedule_id, now - age, overlap) for age in range(4) for schedule_id in schedule_ids]
        )
        handles = [store, second_store] * 2
        answers = await asyncio.gather(*(claim(handle, request(node)) for handle in handles))
        answers.append(await claim(store, request(node)))
        running = Counter(row.schedule_id for answer in answers for row in answer)
        assert running == Counter(schedule_ids)
        listed = await store.list_jobs(JobFilter(TENANT, states=frozenset({State.RUNNING})), 100)
        assert {found.fire_time for found in listed} == {now - 3}

"""fire: cursor and jobs move together, once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from duetime.model.job import JobDraft, JobFilter, State
from duetime.model.limit import Queue
from duetime.model.schedule import Fire
from duetime.store import DueSchedules, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    MINUTE,
    TENANT,
    add,
    claim,
    claim_one,
    fired,
    fires,
    firing,
    job,
    joined,
    known,
    live_counts,
    new_id,
    pause_schedule,
    put,
    remove_schedule,
    request,
    schedule,
    settle,
    stored,
    success,
)


class FireConformance:
    async def test_jobs_take_after_their_schedule(self, store: Store) -> None:
        now = await store.time()
        details: dict[str, Any] = {
            "target": "@http",
            "target_spec": b"{1}",
            "payload": b"\x00\xff",
            "policies": b"{2}",
            "labels": b"{3}",
            "limit_key": "key",
        }
        draft = schedule(queue="billing", priority=9, overlap="queue", owner="owner", **details)
        made = await put(store, draft, now)
        fire = Fire(new_id(now), now, now + 7, None)
        assert await store.fire([firing(made, now + HOUR, fires=(fire,), runs=1)]) == 1
        found = await stored(store, fire.id)
        expected = JobDraft(
            id=fire.id,
            tenant=TENANT,
            schedule_id=made.id,
            schedule="schedule",
            fire_time=now,
            due_at=now + 7,
            queue="billing",
            priority=9,
            overlap="queue",
            owner="owner",
            unique_key=None,
            retry_of=None,
            **details,
        )
        assert tuple(getattr(found, name) for name in expected._fields) == expected
        assert (found.state, found.attempt, found.node) == (State.PENDING, 0, None)
        assert await store.queues() == [Queue("billing")]

    async def test_the_cursor_moves_with_them(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now - HOUR)
        await fired(store, made, now + HOUR, now - HOUR, now)
        moved = replace(made, next_fire_time=now + HOUR, last_fire_time=now, runs=2)
        found = await known(store)
        assert replace(found, updated_at=made.updated_at) == moved

    async def test_step_after_step(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await put(store, schedule(), now - DAY)
        for step in range(5):
            await fired(store, await known(store), now - DAY + (step + 1) * MINUTE, now - DAY + step * MINUTE)
        found = await known(store)
        assert (found.runs, found.last_fire_time, found.version) == (5, now - DAY + 4 * MINUTE, 1)
        assert len(await claim(store, request(node))) == 5

    async def test_the_last_step_leaves_no_cursor(self, store: Store) -> None:
        now = await store.time()
        await fired(store, await put(store, schedule(), now), None, now)
        assert (await known(store)).next_fire_time is None

    async def test_a_step_may_have_no_fires(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now)
        assert await fired(store, made, now + HOUR) == []
        found = await known(store)
        assert (found.next_fire_time, found.last_fire_time, found.runs) == (now + HOUR, None, 0)

    async def test_skipped_fires_go_straight_to_the_past(self, store: Store) -> None:
        """I10."""
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(queue="quiet"), now - HOUR)
        skipped = fires(made.id, now - HOUR, skip_reason="missed: policy latest")
        assert await store.fire([firing(made, now + HOUR, fires=skipped + fires(made.id, now), runs=2)]) == 1
        found = await stored(store, skipped[0].id)
        assert (found.state, found.error, found.attempt) == (State.SKIPPED, "missed: policy latest", 0)
        assert found.finished_at is not None
        assert now <= found.finished_at <= await store.time()
        assert (found.schedule, found.schedule_id, found.fire_time) == ("schedule", made.id, now - HOUR)
        assert await claim(store, request(node)) == []
        assert [count.pending for count in (await live_counts(store)).values()] == [1]
        assert (await known(store)).runs == 2

    async def test_nothing_to_fire(self, store: Store) -> None:
        assert await store.fire([]) == 0

    async def test_many_fires_in_one_step(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now - DAY)
        moments = [now - DAY + position * MINUTE for position in range(1_000)]
        planned = tuple(
            Fire(new_id(moment), moment, moment, "missed: policy skip" if moment % 2 else None)
            for moment in moments
        )
        assert await store.fire([firing(made, now, fires=planned, runs=1_000)]) == 1
        assert len(await store.list_jobs(JobFilter(TENANT), 2_000)) == 1_000

    async def test_many_schedules_in_one_call(self, store: Store) -> None:
        now = await store.time()
        made = [await put(store, schedule(f"{number}"), now) for number in range(100)]
        assert await store.fire([firing(each, now + HOUR, now) for each in made]) == 100
        [count] = (await live_counts(store)).values()
        assert count.pending == 100
        assert await store.list_schedules(DueSchedules(range(64), now + HOUR - 1), 1) == []


class FireOnceConformance:
    """B5, I11: a planner that lost its lease, or repeats itself, adds nothing."""

    async def test_a_repeated_step_changes_nothing(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now)
        step = firing(made, now + HOUR, now)
        assert await store.fire([step]) == 1
        before = await known(store)
        assert await store.fire([step]) == 0
        assert await known(store) == before
        assert len(await store.list_jobs(JobFilter(TENANT), 10)) == 1

    async def test_a_step_twice_in_one_call_is_taken_once(self, store: Store) -> None:
        now = await store.time()
        step = firing(await put(store, schedule(), now), now + HOUR, now)
        assert await store.fire([step, step]) == 1
        assert (await known(store)).runs == 1

    async def test_a_step_from_another_version_is_refused(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now)
        edited = await put(store, schedule(), now)
        assert await store.fire([firing(made, now + HOUR, now)]) == 0
        assert await known(store) == edited
        assert await store.list_jobs(JobFilter(TENANT), 10) == []

    async def test_a_step_from_another_cursor_is_refused(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now)
        for cursor in (now - 1, now + 1):
            assert await store.fire([firing(made, now + HOUR, now, cursor=cursor)]) == 0
        assert await known(store) == made
        assert await store.list_jobs(JobFilter(TENANT), 10) == []

    async def test_a_paused_schedule_does_not_fire(self, store: Store) -> None:
        now = await store.time()
        await put(store, schedule(), now)
        paused = await pause_schedule(store, TENANT, "schedule", None)
        assert paused is not None
        assert await store.fire([firing(replace(paused, next_fire_time=now), now + HOUR, now)]) == 0
        assert await store.list_jobs(JobFilter(TENANT), 10) == []

    async def test_a_removed_schedule_does_not_fire(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now)
        await remove_schedule(store, TENANT, "schedule")
        assert await store.fire([firing(made, now + HOUR, now)]) == 0
        assert await store.list_jobs(JobFilter(TENANT), 10) == []

    async def test_of_many_only_those_that_stand_are_applied(self, store: Store) -> None:
        now = await store.time()
        made = [await put(store, schedule(f"{number}"), now) for number in range(9)]
        for number in (1, 4, 7):
            await put(store, schedule(f"{number}"), now)
        assert await store.fire([firing(each, now + HOUR, now) for each in made]) == 6
        cursors = [(await known(store, f"{number}")).next_fire_time for number in range(9)]
        assert cursors == [now if number % 3 == 1 else now + HOUR for number in range(9)]
        assert len(await store.list_jobs(JobFilter(TENANT), 10)) == 6

    async def test_a_fire_that_is_stored_is_left_alone(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now)
        [fire] = fires(made.id, now)
        await add(store, job(now, id=fire.id, payload=b"earlier"))
        assert await store.fire([firing(made, now + HOUR, now)]) == 1
        assert (await stored(store, fire.id)).payload == b"earlier"

    async def test_a_fire_that_is_past_does_not_run_again(self, store: Store) -> None:
        """I3: the cursor was set back over a fire that is done."""
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now)
        [done] = await fired(store, made, now + HOUR, now)
        assert await settle(store, [success(await claim_one(store, node), now)]) == []
        again = await put(store, schedule(), now)
        assert await fired(store, again, now + HOUR, now) == [done]
        skipped = fires(made.id, now, skip_reason="missed")
        again = await put(store, schedule(), now)
        assert await store.fire([firing(again, now + HOUR, fires=skipped)]) == 1
        assert await claim(store, request(node)) == []
        assert (await stored(store, done)).state is State.SUCCEEDED
        assert len(await store.list_jobs(JobFilter(TENANT), 10)) == 1

    async def test_a_cancelled_fire_is_not_planned_again(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now + HOUR)
        [fire] = await fired(store, made, now + DAY, now + HOUR)
        await store.cancel_job(TENANT, fire, "not this one")
        edited = await put(store, schedule(), now + HOUR)
        assert await fired(store, edited, now + DAY, now + HOUR) == [fire]
        assert (await stored(store, fire)).state is State.CANCELLED
        assert await claim(store, request(node, prefetch=2 * HOUR)) == []

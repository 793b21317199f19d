"""Hints: heard soon, on this handle and, where it is a capability, on another.

A hint may be lost, so each test repeats what should cause one until it is heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

from duetime.model.hint import CancelHint, Hint, JobHint, ScheduleHint
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    LANE,
    PRIORITY,
    QUEUE,
    TENANT,
    add,
    claim,
    fired,
    job,
    joined,
    new_id,
    of_schedule,
    pause_schedule,
    put,
    request,
    resume_schedule,
    schedule,
    started,
)

TRIES, PATIENCE = 300, 0.2


class Ear:
    """Collects hints from whichever thread they come, and wakes the test."""

    def __init__(self) -> None:
        self.heard: list[Hint] = []
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    def __call__(self, hint: Hint) -> None:
        self._loop.call_soon_threadsafe(self._note, hint)

    async def hears(self, act: Callable[[], Awaitable[object]], fits: Callable[[Hint], bool]) -> bool:
        for _ in range(TRIES):
            await act()
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._until(fits)
                    return True
        return False

    async def _until(self, fits: Callable[[Hint], bool]) -> None:
        while not any(map(fits, self.heard)):
            self._news.clear()
            await self._news.wait()

    def _note(self, hint: Hint) -> None:
        self.heard.append(hint)
        self._news.set()


def calls_for(queue: str, priority: int, due_at: int) -> Callable[[Hint], bool]:
    """A hint that makes a worker look at this lane by this instant."""
    return lambda hint: (
        isinstance(hint, JobHint)
        and (hint.queue == "*" or (hint[:2] == (queue, priority) and hint.due_at <= due_at))
    )


def plans_by(moment: int) -> Callable[[Hint], bool]:
    """A hint that makes a planner look by this instant."""
    return lambda hint: isinstance(hint, ScheduleHint) and hint.next_fire_time <= moment


class HintConformance:
    async def test_a_new_job_is_announced(self, store: Store) -> None:
        now, ear = await store.time(), Ear()
        store.subscribe(ear)
        assert await ear.hears(lambda: add(store, job(now)), calls_for(QUEUE, PRIORITY, now)), ear.heard

    async def test_any_queue_name_is_announced(self, store: Store) -> None:
        now, ear, queue = await store.time(), Ear(), "it's a queue, 🦄 : 9 * 3"
        store.subscribe(ear)
        assert await ear.hears(
            lambda: add(store, job(now, queue=queue, priority=0)), calls_for(queue, 0, now)
        ), ear.heard

    async def test_another_handle_hears_it(self, store: Store, second_store: Store) -> None:
        now, ear = await store.time(), Ear()
        listening = second_store if store.capabilities.hints else store
        listening.subscribe(ear)
        assert await ear.hears(lambda: add(store, job(now)), calls_for(QUEUE, PRIORITY, now)), ear.heard

    async def test_each_lane_of_a_batch_is_announced(self, store: Store) -> None:
        now, ear, lanes = await store.time(), Ear(), [("a", 1), ("b", 2)]
        store.subscribe(ear)

        async def add_to_both() -> None:
            await store.add_jobs([job(now, queue=queue, priority=priority) for queue, priority in lanes])

        for queue, priority in lanes:
            assert await ear.hears(add_to_both, calls_for(queue, priority, now)), ear.heard

    async def test_a_job_brought_forward_is_announced(self, store: Store) -> None:
        now, ear = await store.time(), Ear()
        draft = await add(store, job(now + DAY))
        store.subscribe(ear)
        assert await ear.hears(
            lambda: store.reschedule_job(TENANT, draft.id, now, None), calls_for(QUEUE, PRIORITY, now)
        ), ear.heard

    async def test_a_fire_due_now_is_announced(self, store: Store) -> None:
        now, ear, ages = await store.time(), Ear(), count()
        store.subscribe(ear)

        async def fire_again() -> None:
            planned = await put(store, schedule(queue="fires"), now)
            await fired(store, planned, now + HOUR, now - next(ages))

        assert await ear.hears(fire_again, calls_for("fires", PRIORITY, now)), ear.heard

    async def test_a_cursor_is_announced(self, store: Store) -> None:
        now, ear = await store.time(), Ear()
        store.subscribe(ear)
        assert await ear.hears(lambda: put(store, schedule(), now), plans_by(now)), ear.heard

    async def test_a_resumed_cursor_is_announced(self, store: Store) -> None:
        now, ear = await store.time(), Ear()
        await put(store, schedule(), now + DAY)
        store.subscribe(ear)

        async def pause_and_resume() -> None:
            await pause_schedule(store, TENANT, "schedule", None)
            await resume_schedule(store, TENANT, "schedule", now)

        assert await ear.hears(pause_and_resume, plans_by(now)), ear.heard

    async def test_a_wish_to_stop_is_announced(self, store: Store) -> None:
        node, now, ear = await joined(store), await store.time(), Ear()
        store.subscribe(ear)
        wanted: set[CancelHint] = set()

        async def cancel_another() -> None:
            claimed = await started(store, node, job(now))
            wanted.add(CancelHint(node, claimed.id))
            await store.cancel_job(TENANT, claimed.id, "")

        assert await ear.hears(cancel_another, lambda hint: hint in wanted), ear.heard

    async def test_cancel_previous_is_announced(self, store: Store) -> None:
        node, now, ear = await joined(store), await store.time(), Ear()
        store.subscribe(ear)
        wanted: set[CancelHint] = set()

        async def overtake_another() -> None:
            schedule_id = new_id(0)
            claimed = await started(store, node, of_schedule(schedule_id, now, "cancel_previous"))
            wanted.add(CancelHint(node, claimed.id))
            await add(store, of_schedule(schedule_id, now, "cancel_previous"))
            assert await claim(store, request(node)) == []

        assert await ear.hears(overtake_another, lambda hint: hint in wanted), ear.heard

    async def test_a_hint_by_hand_reaches_everybody(self, store: Store, second_store: Store) -> None:
        near, far = Ear(), Ear()
        store.subscribe(near)
        (second_store if store.capabilities.hints else store).subscribe(far)
        sent = JobHint(LANE.queue, LANE.priority, 12_345)
        for ear in (near, far):
            assert await ear.hears(lambda: store.hint([sent]), calls_for(QUEUE, PRIORITY, 12_345)), ear.heard

    async def test_who_unsubscribed_hears_no_more(self, store: Store) -> None:
        gone, ear = Ear(), Ear()
        unsubscribe = store.subscribe(gone)
        store.subscribe(ear)
        unsubscribe()
        unsubscribe()
        sent = JobHint("later", 0, 1)
        assert await ear.hears(lambda: store.hint([sent]), calls_for("later", 0, 1)), ear.heard
        assert sent not in gone.heard

    async def test_two_listeners_of_one_handle(self, store: Store) -> None:
        ears = [Ear(), Ear()]
        for ear in ears:
            store.subscribe(ear)
        for ear in ears:
            assert await ear.hears(lambda: store.hint([JobHint("q", 3, 1)]), calls_for("q", 3, 1)), ear.heard

    async def test_hint_without_a_listener_is_accepted(self, store: Store) -> None:
        await store.hint([JobHint("*", 0, 0), ScheduleHint(1), CancelHint(await joined(store), new_id(0))])
        await store.hint([])

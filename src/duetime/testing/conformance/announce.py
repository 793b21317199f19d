"""await_job: a caller that waits for a job hears when it has become final."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from duetime.model.hint import DoneHint
from duetime.model.job import State
from duetime.model.unique import LIVE, OnConflict, Rule
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    TENANT,
    add,
    announce,
    claim,
    claim_one,
    death,
    finished,
    job,
    joined,
    new_id,
    of_schedule,
    request,
    retry,
    settle,
    started,
    success,
)
from duetime.testing.conformance.hints import Ear


async def heard_of(waiting: Store, end_another: Callable[[], Awaitable[UUID]]) -> bool:
    """Whether the end of a job is announced to this handle, which listens."""
    ear, ended = Ear(), set[DoneHint]()
    unsubscribe = waiting.subscribe(ear)

    async def act() -> None:
        ended.add(DoneHint(await end_another()))

    try:
        return await ear.hears(act, lambda hint: hint in ended)
    finally:
        unsubscribe()


class AnnounceConformance:
    async def test_a_live_job_can_be_waited_for(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        waiting, running = await add(store, job(now + 1_000_000_000)), await started(store, node, job(now))
        assert [await announce(store, waiting.id), await announce(store, running.id)] == [True, True]
        assert await announce(store, running.id), "twice is fine"

    async def test_a_final_job_cannot(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        done = await finished(store, node, job(now), now)
        dead = await finished(store, node, job(now), now, State.DEAD)
        assert [await announce(store, job_id) for job_id in (done.id, dead.id, new_id(0))] == [False] * 3

    async def test_its_success_is_announced(self, store: Store) -> None:
        node, now = await joined(store), await store.time()

        async def succeed() -> UUID:
            draft = await add(store, job(now))
            assert await announce(store, draft.id)
            assert await settle(store, [success(await claim_one(store, node), now)]) == []
            return draft.id

        assert await heard_of(store, succeed)

    async def test_its_end_elsewhere_is_announced(self, store: Store, second_store: Store) -> None:
        """One waits, another works."""
        node, now = await joined(second_store), await store.time()

        async def succeed() -> UUID:
            claimed = await started(second_store, node, job(now))
            assert await announce(store, claimed.id)
            assert await settle(second_store, [success(claimed, now)]) == []
            return claimed.id

        assert await heard_of(store if store.capabilities.hints else second_store, succeed)

    async def test_the_end_of_its_last_attempt_is_announced(self, store: Store) -> None:
        """An attempt that is followed by another is no end, and the wish to hear of the end outlives it."""
        node, now = await joined(store), await store.time()

        async def fail_and_die() -> UUID:
            claimed = await started(store, node, job(now))
            assert await announce(store, claimed.id)
            assert await settle(store, [retry(claimed, now, now)]) == []
            assert await settle(store, [death(await claim_one(store, node), now)]) == []
            return claimed.id

        assert await heard_of(store, fail_and_die)

    async def test_cancelling_what_waits_is_announced(self, store: Store) -> None:
        now = await store.time()

        async def cancel() -> UUID:
            draft = await add(store, job(now))
            assert await announce(store, draft.id)
            await store.cancel_job(TENANT, draft.id, "")
            return draft.id

        assert await heard_of(store, cancel)

    async def test_being_replaced_is_announced(self, store: Store) -> None:
        now, rule = await store.time(), Rule(LIVE, None, OnConflict.REPLACE)

        async def replace() -> UUID:
            draft = await add(store, job(now, unique_key=f"{new_id(0)}"))
            assert await announce(store, draft.id)
            await store.add_unique(job(now, unique_key=draft.unique_key), rule)
            return draft.id

        assert await heard_of(store, replace)

    async def test_a_fire_skipped_for_an_overlap_is_announced(self, store: Store) -> None:
        node, now = await joined(store), await store.time()

        async def overlap() -> UUID:
            schedule_id = new_id(0)
            await started(store, node, of_schedule(schedule_id, now - 2, "skip"))
            draft = await add(store, of_schedule(schedule_id, now - 1, "skip"))
            assert await announce(store, draft.id)
            assert await claim(store, request(node)) == []
            return draft.id

        assert await heard_of(store, overlap)

    async def test_end_without_waiting_caller_is_not_announced(self, store: Store) -> None:
        """No caller waits for most jobs: their end is not announced."""
        node, now, ear = await joined(store), await store.time(), Ear()
        store.subscribe(ear)

        async def one_of_two() -> UUID:
            unwatched, watched = await started(store, node, job(now)), await started(store, node, job(now))
            assert await announce(store, watched.id)
            assert await settle(store, [success(unwatched, now), success(watched, now)]) == []
            return watched.id

        assert await heard_of(store, one_of_two)
        assert len([hint for hint in ear.heard if isinstance(hint, DoneHint)]) <= 1

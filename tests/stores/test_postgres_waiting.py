"""Whoever waits for a job writes into its row, and claims pass over rows that are being written: so they are told of it once more."""

from __future__ import annotations

from functools import partial

from duetime.model.hint import Hint, JobHint
from duetime.stores.postgres import PostgresStore
from duetime.testing.conformance.drafts import DAY, PRIORITY, QUEUE, add, job, joined, new_id, of_schedule, started
from duetime.testing.conformance.hints import Ear


async def test_a_pending_job_that_is_waited_for_is_told_of_once_more(store: PostgresStore) -> None:
    now, ear = await store.time(), Ear()
    plain, exclusive = job(now), of_schedule(new_id(0), now, "queue", queue="second")
    await store.add_jobs([plain, exclusive])
    store.subscribe(ear)
    for draft in (plain, exclusive):
        told = JobHint(draft.queue, PRIORITY, now, draft.overlap is not None)
        assert await ear.hears(partial(store.await_job, draft.id), told.__eq__), ear.heard


async def test_jobs_that_run_or_are_far_are_not_told_of(store: PostgresStore) -> None:
    node, now, ear = await joined(store), await store.time(), Ear()
    running, far, last = await started(store, node, job(now)), await add(store, job(now + DAY)), await add(store, job(now, queue="last"))

    def of_the_last(hint: Hint) -> bool:
        return isinstance(hint, JobHint) and hint.queue == "last"

    async def wait_for_all() -> None:
        for draft in (running, far, last):
            assert await store.await_job(draft.id)

    store.subscribe(ear)
    assert await ear.hears(wait_for_all, of_the_last)
    assert not [hint for hint in ear.heard if isinstance(hint, JobHint) and hint.queue == QUEUE]


async def test_only_the_mark_itself_does_not_wait_for_the_disk(store: PostgresStore) -> None:
    draft = await add(store, job(await store.time() + DAY))
    await store._lines.submit.value("SELECT set_config('synchronous_commit', 'on', false)")
    assert await store.await_job(draft.id)
    assert await store._lines.submit.value("SHOW synchronous_commit") == "on"

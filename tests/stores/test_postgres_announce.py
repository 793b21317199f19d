"""A caller that waits for a job writes to its row, and claims pass over rows that are being written: so a
hint is sent once more."""

from __future__ import annotations

from functools import partial

from duetime.model.hint import Hint, JobHint
from duetime.stores.postgres import PostgresStore
from duetime.testing.conformance.drafts import (
    DAY,
    PRIORITY,
    QUEUE,
    add,
    announce,
    job,
    joined,
    new_id,
    of_schedule,
    started,
)
from duetime.testing.conformance.hints import Ear


async def test_hint_is_repeated_for_an_awaited_pending_job(store: PostgresStore) -> None:
    now, ear = await store.time(), Ear()
    plain, alone = job(now), of_schedule(new_id(0), now, "queue", queue="second")
    await store.add_jobs([plain, alone])
    store.subscribe(ear)
    for draft in (plain, alone):
        hint = JobHint(draft.queue, PRIORITY, now)
        assert await ear.hears(partial(announce, store, draft.id), hint.__eq__), ear.heard


async def test_no_hint_for_an_awaited_job_that_runs_or_is_not_due_soon(store: PostgresStore) -> None:
    node, now, ear = await joined(store), await store.time(), Ear()
    running, far, last = (
        await started(store, node, job(now)),
        await add(store, job(now + DAY)),
        await add(store, job(now, queue="last")),
    )

    def of_the_last(hint: Hint) -> bool:
        return isinstance(hint, JobHint) and hint.queue == "last"

    async def wait_for_all() -> None:
        for draft in (running, far, last):
            assert await announce(store, draft.id)

    store.subscribe(ear)
    assert await ear.hears(wait_for_all, of_the_last)
    assert not [hint for hint in ear.heard if isinstance(hint, JobHint) and hint.queue == QUEUE]


async def test_only_the_announcement_does_not_wait_for_the_disk(store: PostgresStore) -> None:
    draft = await add(store, job(await store.time() + DAY))
    await store._connections.submit.value("SELECT set_config('synchronous_commit', 'on', false)")
    assert await announce(store, draft.id)
    assert await store._connections.submit.value("SHOW synchronous_commit") == "on"

"""Bulk submission: all or nothing, at one round trip."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import duetime as dt

LATER = datetime(2031, 1, 1, tzinfo=UTC)


async def test_jobs_are_stored_in_the_given_order(app: dt.App) -> None:
    await app.open()
    handles = await app.submit_many(
        [dt.NewJob("work", {"n": n}, delay="1h", priority=n % 10) for n in range(500)]
    )
    assert len({handle.id for handle in handles}) == 500
    for n in (0, 123, 499):
        job = await handles[n].refresh()
        assert (job.payload, job.priority) == ({"n": n}, n % 10)


async def test_empty_batch_stores_nothing(app: dt.App) -> None:
    await app.open()
    assert await app.submit_many([]) == []
    assert await app.submit_many(iter(())) == []


async def test_jobs_of_a_batch_run(app: dt.App) -> None:
    seen: set[int] = set()

    @app.task("work")
    async def work(n: int) -> None:
        seen.add(n)

    async with app.running():
        for handle in await app.submit_many(dt.NewJob("work", {"n": n}) for n in range(200)):
            await handle.wait("60s")
    assert seen == set(range(200))


@pytest.mark.parametrize(
    "wrong",
    [
        dt.NewJob("work", {"n": 1}, priority=11),
        dt.NewJob("work", {"n": 1}, at=datetime(2030, 1, 1)),
        dt.NewJob("work", {"n": 1}, at=LATER, delay="5m"),
        dt.NewJob("work", {"n": float("nan")}),
        dt.NewJob("work", {"n": 1, "extra": 2}),
        dt.NewJob("work", {}),
        dt.NewJob("work", [1]),
        dt.NewJob("work", "text"),
        dt.NewJob("", {"n": 1}),
        dt.NewJob("@http", {"n": 1}),
        dt.NewJob(None, {"n": 1}),
    ],
)
async def test_one_invalid_job_refuses_the_batch(client: dt.App, wrong: dt.NewJob) -> None:
    @client.task("work")
    async def work(n: int) -> None: ...

    with pytest.raises((dt.InvalidInput, dt.TaskNotFound)):
        await client.submit_many([dt.NewJob("work", {"n": 1}), wrong])
    assert await client.jobs() == []


async def test_taken_unique_key_returns_its_job(app: dt.App) -> None:
    await app.open()
    holder = await app.submit("work", unique_key="k", delay="1h")
    free, taken, again = await app.submit_many(
        [dt.NewJob("work", delay="1h"), dt.NewJob("work", unique_key="k"), dt.NewJob("work", unique_key="k")]
    )
    assert (taken.id, taken.created, again.id, again.created) == (holder.id, False, holder.id, False)
    assert free.created
    assert len(await app.jobs()) == 2


async def test_batch_item_that_is_not_a_new_job_is_refused(client: dt.App) -> None:
    wrong: list[Any] = [{"task": "work"}, "work", ("work",)]
    for job in wrong:
        with pytest.raises(dt.InvalidInput, match="NewJob"):
            await client.submit_many([job])

"""Skipped fires run after all: by a backfill, or by a retry of the skipped job."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

import duetime as dt
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import State
from duetime.model.lease import NodeDraft
from duetime.model.schedule import plan_fires
from duetime.model.settle import skip
from duetime.store import ClaimRequest, Lane
from duetime.testing.conformance.drafts import put_schedule

HOUR = 3_600 * SECOND


class Work:
    """A task that notes its fires, and how many of them run at the same time."""

    def __init__(self, app: dt.App) -> None:
        self.fires: list[datetime] = []
        self.payloads: list[str] = []
        self.running = self.highest = 0

        @app.task("report")
        async def report(ctx: dt.Context, kind: str) -> None:
            self.running += 1
            self.highest = max(self.highest, self.running)
            self.fires.append(ctx.fire_time)
            self.payloads.append(kind)
            await asyncio.sleep(0.01)
            self.running -= 1


async def hourly(app: dt.App, **options: Any) -> datetime:
    await app.schedule("hourly", "report", dt.Every("1h"), payload={"kind": "a"}, **options)
    now = await app.now()
    return to_datetime(now - now % HOUR)


async def finish(app: dt.App, jobs: tuple[UUID, ...]) -> list[str]:
    return [(await (await app.get_job(one)).wait("30s")).state for one in jobs]


async def skipped_fires(app: dt.App, last: datetime, count: int) -> list[UUID]:
    """Fires of a past outage, which the schedule's policy has skipped."""
    schedule, now = await app.schedules.find("hourly"), await app.now()
    first = int(last.timestamp()) * SECOND - (count - 1) * HOUR
    await put_schedule(app.store, schedule.draft, first, None)
    await app.store.fire([plan_fires(await app.schedules.find("hourly"), now, now)])
    return [job.id for job in await app.jobs(state="skipped")]


@pytest.mark.parametrize("overlap", ["skip", "cancel_previous"])
async def test_backfilled_fires_run_one_after_another(app: dt.App, overlap: str) -> None:
    work = Work(app)
    async with app.running(concurrency=10):
        last = await hourly(app, overlap=overlap)
        report = await app.backfill("hourly", last - timedelta(hours=3), last + timedelta(seconds=1))
        assert await finish(app, report.jobs) == ["succeeded"] * 4
    assert work.highest == 1
    assert sorted(work.fires) == [last - timedelta(hours=number) for number in (3, 2, 1, 0)]


async def test_skipped_fire_is_retried_with_its_time_and_payload(app: dt.App) -> None:
    work = Work(app)
    async with app.running():
        last = await hourly(app, missed="skip", overlap="skip", expires="1m")
        [skipped] = await skipped_fires(app, last, 1)
        assert "retry it" in str((await app.why.job(skipped)).remedy)
        again = await app.retry_job(skipped)
        assert (await again.wait("30s")).state == "succeeded"
        assert (work.fires, work.payloads) == ([last], ["a"])
        assert (await app.get_job(skipped)).state == "skipped"
        assert (await app.why.job(skipped)).why.endswith("it was retried as another job")
        with pytest.raises(dt.JobFinished, match="already retried"):
            await app.retry_job(skipped)
        assert (await app.backfill("hourly", last)).existing == 1


async def test_what_cannot_be_retried_says_what_can(app: dt.App) -> None:
    await app.open()
    last = await hourly(app, missed="skip")
    [skipped] = await skipped_fires(app, last, 1)
    with pytest.raises(dt.JobFinished, match="only dead letters can be discarded"):
        await app.discard_job(skipped)
    with pytest.raises(dt.JobFinished, match="retry it to run it again"):
        await app.jobs.run(skipped)
    pending = await app.submit("report", kind="a", delay="1h")
    with pytest.raises(dt.JobFinished, match="only dead letters and skipped jobs can be retried"):
        await app.retry_job(pending.id)


async def test_backfill_is_repeated_for_fires_that_were_skipped_again(app: dt.App) -> None:
    await app.open()
    last = await hourly(app)
    ids: list[UUID] = []
    node = await app.store.join(NodeDraft("node", ("worker",), "1"), HOUR)
    for _ in range(3):
        report = await app.backfill("hourly", last)
        assert (len(report.jobs), report.existing) == (1, 0)
        assert (await app.backfill("hourly", last)).existing == 1  # it is pending
        ids += report.jobs
        claimed, _ = await app.store.claim(ClaimRequest(node, (Lane("default", 5, 0),), ("report",), 5, 0))
        await app.store.settle([skip(claimed[0], "expired", await app.now())])
    assert len(set(ids)) == 3
    assert [(await app.get_job(one)).state for one in ids] == [State.SKIPPED] * 3

"""Versions, edits, backfill and previews of schedules, on every store."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest

import duetime as dt
from duetime.errors import InvalidInput, ScheduleNotFound, VersionConflict, VersionNotFound
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import JobFilter
from duetime.model.schedule import plan_fires


async def planned(app: dt.App, seconds: int) -> None:
    """What a planner does that looks so far ahead."""
    known, now = await app.schedules.find("tick"), await app.now()
    assert await app.store.fire([plan_fires(known, now, now + seconds * SECOND)]) == 1


async def stored(app: dt.App) -> int:
    return len(await app.store.list_jobs(JobFilter(app.tenant, schedule="tick"), 1_000))


async def test_edit_is_planned_applied_and_restored(app: dt.App) -> None:
    await app.open()
    await app.schedule("tick", "work", dt.Every("10s"), payload={"n": 1}, author="ann")
    await planned(app, 600)
    before = await stored(app)
    plan = await app.previews.edit("tick", {"when": dt.Every("20s"), "payload": {"n": 2}}, horizon="10m")
    assert plan.jobs_withdrawn in (before, before - 1)  # one may have fallen due meanwhile
    assert abs(plan.fires.kept - 30) <= 1
    assert abs(len(plan.fires.withdrawn) - 30) <= 1
    assert await stored(app) == before
    edited = await app.schedules.edit(
        "tick", {"when": dt.Every("20s"), "payload": {"n": 2}}, version=plan.version, author="bob"
    )
    assert (edited.version, edited.draft.when, await stored(app) <= 2) == (2, dt.Every("20s"), True)
    with pytest.raises(VersionConflict):
        await app.schedules.edit("tick", {"priority": 1}, version=1)
    back = await app.versions.restore("tick", 1, expect_version=2, author="cid")
    assert (back.version, back.draft.when, back.draft.payload) == (3, dt.Every("10s"), b'{"n":1}')
    rows = await app.versions("tick")
    assert [(row.version, row.author, [change.field for change in row.diff]) for row in rows] == [
        (3, "cid", ["when", "payload"]),
        (2, "bob", ["when", "payload"]),
        (1, "ann", []),
    ]


async def test_versions_record_authors_of_pause_resume_and_remove(app: dt.App) -> None:
    await app.open()
    await app.schedule("tick", "work", dt.Every("10s"), author="ann")
    await app.pause("tick", "moving", author="bob")
    await app.pause("tick", "moving", author="cid")  # it is paused just so
    await app.resume("tick", author="dan")
    with pytest.raises(VersionConflict):
        await app.schedules.remove_version("tick", expect_version=2, author="eve")
    await app.schedules.remove_version("tick", expect_version=3, author="eve")
    rows = await app.versions("tick")
    assert [(row.version, row.author, row.change) for row in rows] == [
        (4, "eve", "removed"), (3, "dan", "resumed"), (2, "bob", "paused"), (1, "ann", "created"),
    ]  # fmt: skip
    with pytest.raises(VersionNotFound):
        await app.versions.restore("tick", 9)
    assert (await app.versions.restore("tick", 1)).version == 5
    with pytest.raises(ScheduleNotFound):
        await app.versions("tock")


async def test_backfill_creates_each_past_fire_once_at_the_given_rate(app: dt.App) -> None:
    await app.open()
    await app.schedule("tick", "work", dt.Every("1m"))
    now = await app.now()
    start = to_datetime(now) - timedelta(hours=1)
    first = await app.backfill("tick", start, rate="10/1s", limit=40)
    assert (len(first.jobs), first.existing) == (40, 0)
    assert first.next_from is not None
    second = await app.backfill("tick", first.next_from, to_datetime(now), rate="10/1s")
    assert (len(second.jobs) in (20, 21), second.existing, second.next_from) == (True, 0, None)
    again = await app.backfill("tick", start, to_datetime(now))
    assert (again.jobs, again.existing) == ((), len(first.jobs + second.jobs))
    jobs = [await app.read_job(job_id) for job_id in first.jobs + second.jobs]
    assert [job.due_at - jobs[0].due_at for job in jobs] == [
        number * SECOND // 10 for number in range(len(jobs))
    ]
    with pytest.raises(InvalidInput, match="to: is in the future"):
        await app.backfill("tick", start, to_datetime(now) + timedelta(days=1))


async def test_concurrent_backfills_keep_the_rate_together(app: dt.App) -> None:
    await app.open()
    await app.schedule("tick", "work", dt.Every("1m"))
    now = to_datetime(await app.now())
    spans = [
        (now - timedelta(minutes=10 * (part + 1)), now - timedelta(minutes=10 * part)) for part in range(4)
    ]
    done = await asyncio.gather(*(app.backfill("tick", start, end, rate="1/1s") for start, end in spans))
    due = sorted([(await app.read_job(job_id)).due_at for part in done for job_id in part.jobs])
    assert len(due) == 40
    assert all(later - earlier >= SECOND for earlier, later in pairwise(due))


async def test_previews_show_local_times_and_clock_changes(app: dt.App) -> None:
    await app.open()
    when = dt.Cron("30 2 * * *", "Europe/Berlin")
    after = dt.At(to_datetime(1_774_699_200 * SECOND)).moment  # 2026-03-28 12:00 UTC
    found = await app.previews.when(when, count=1, after=after)
    assert [(fire.local.isoformat(), (fire.note or "")[:15]) for fire in found.fires] == [
        ("2026-03-29T03:00:00+02:00", "the clock jumps")
    ]
    await app.schedule("tick", "work", when)
    assert await app.previews.schedule("tick", count=1, after=after) == found

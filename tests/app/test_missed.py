"""Fires that no planner planned in time, or no worker started in time: each runs or is recorded as skipped with its reason.

A cursor in the past is what a store looks like after an outage, so the tests write just that.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import duetime as dt
from duetime.engine.run import start_check
from duetime.engine.submit.build import NO_DEFAULTS
from duetime.engine.submit.commands import scheduled_job
from duetime.engine.submit.schedules import schedule_draft
from duetime.model import schedule as schedule_model
from duetime.model import why_facts
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, to_datetime, to_micros
from duetime.model.schedule import plan_fires
from duetime.testing.conformance.drafts import put_schedule
from tests.app.waiting import eventually

OUTAGE = timedelta(minutes=10)
HALF_A_MINUTE = timedelta(seconds=30)


async def after_an_outage(app: dt.App, **options: Any) -> list[dt.JobHandle]:
    """The jobs of a one-minute schedule whose planners were away for ten minutes, oldest first, once all are
    settled."""

    @app.task("work")
    async def work() -> None: ...

    await app.open()
    now = datetime.now(UTC)
    latest = (
        now - HALF_A_MINUTE
    )  # whatever time of day the test runs: no fire is near enough to count as punctual
    cursor = latest - OUTAGE
    draft = schedule_draft(
        Ids(),
        "default",
        "minutely",
        "work",
        dt.Every("1m", anchor=latest),
        NO_DEFAULTS,
        to_micros(now),
        options,
    )
    await put_schedule(app.store, draft, to_micros(cursor), 0)
    async with app.running(lookahead="1s"):

        async def settled() -> bool:
            view = await app.get_schedule("minutely")
            jobs = await past(app, now)
            return (
                view.next_fire_time is not None
                and view.next_fire_time > now
                and bool(jobs)
                and all(job.state.final for job in jobs)
            )

        await eventually(settled)
        jobs = await past(app, now)
    assert [job.fire_time for job in jobs] == [cursor + timedelta(minutes=n) for n in range(len(jobs))]
    assert len(jobs) >= 10
    return jobs


async def past(app: dt.App, now: datetime) -> list[dt.JobHandle]:
    return sorted(
        (job for job in await app.jobs(schedule="minutely") if job.fire_time < now),
        key=lambda job: job.fire_time,
    )


def states(jobs: list[dt.JobHandle]) -> list[str]:
    return [str(job.state) for job in jobs]


async def test_missed_latest_runs_the_latest_and_skips_the_others(app: dt.App) -> None:
    jobs = await after_an_outage(app)
    assert states(jobs) == ["skipped"] * (len(jobs) - 1) + ["succeeded"]
    assert {job.error for job in jobs[:-1]} == {"missed: policy latest"}


async def test_missed_all_runs_every_fire(app: dt.App) -> None:
    jobs = await after_an_outage(app, missed="all")
    assert states(jobs) == ["succeeded"] * len(jobs)


async def test_missed_all_with_max_runs_the_newest(app: dt.App) -> None:
    jobs = await after_an_outage(app, missed=dt.Missed("all", max=3))
    assert states(jobs) == ["skipped"] * (len(jobs) - 3) + ["succeeded"] * 3
    assert jobs[0].error == "missed: only the last 3 run"


async def test_missed_within_skips_older_fires(app: dt.App) -> None:
    jobs = await after_an_outage(app, missed=dt.Missed("all", within="4m30s"))
    young = sum(state == "succeeded" for state in states(jobs))
    assert young in (4, 5)
    assert states(jobs) == ["skipped"] * (len(jobs) - young) + ["succeeded"] * young
    assert jobs[0].error == "missed: older than 4m30s"


async def test_missed_skip_runs_no_fire(app: dt.App) -> None:
    jobs = await after_an_outage(app, missed=dt.Missed("skip"))
    assert states(jobs) == ["skipped"] * len(jobs)
    assert {job.error for job in jobs} == {"missed: policy skip"}


async def planned_ahead(app: dt.App, age: int, fires: int, **options: Any) -> list[dt.JobHandle]:
    """The jobs of a schedule that a planner planned ahead, one each second from `age` seconds ago on, before
    all nodes went away; once a worker without a planner has settled them."""

    @app.task("work")
    async def work() -> None: ...

    await app.open()
    now = to_micros(datetime.now(UTC))
    cursor = now - age * SECOND
    draft = schedule_draft(
        Ids(),
        "default",
        "minutely",
        "work",
        dt.Every("1s", anchor=to_datetime(now)),
        NO_DEFAULTS,
        now,
        options,
    )
    schedule = await put_schedule(app.store, draft, cursor, 0)
    assert schedule is not None
    assert await app.store.fire([plan_fires(schedule, cursor - SECOND, cursor + (fires - 1) * SECOND)]) == 1
    async with app.running(roles=["worker"]):

        async def settled() -> bool:
            return all(job.state.final for job in await app.jobs(schedule="minutely"))

        await eventually(settled)
        jobs = await past(app, datetime.now(UTC))
    assert len(jobs) == fires
    return jobs


@pytest.mark.parametrize(
    ("missed", "ran", "reason"),
    [
        (dt.Missed("skip"), 0, "missed: policy skip"),
        (dt.Missed("latest", within="10s"), 0, "missed: older than 10s"),
        (dt.Missed("latest"), 0, "missed: policy latest"),  # later fires, not planned yet, are missed, too
        (dt.Missed("all", max=35), 5, "missed: only the last 35 run"),
        (dt.Missed("all"), 10, None),
    ],
)
async def test_fires_planned_ahead_follow_the_missed_policy_when_they_start(
    app: dt.App, missed: dt.Missed, ran: int, reason: str | None
) -> None:
    counters = app.watch().counters
    jobs = await planned_ahead(app, 45, 10, missed=missed)
    skipped = states(jobs).count("skipped")
    assert counters.skipped == ({("default", "minutely"): skipped} if skipped else {})
    late = sum(state == "succeeded" for state in states(jobs))
    assert late in (ran, max(ran - 1, 0))  # a second may pass before the worker starts them
    assert states(jobs) == ["skipped"] * (len(jobs) - late) + ["succeeded"] * late
    reasons = {str(job.error).partition("; it waited ") for job in jobs if job.state == "skipped"}
    assert {said for said, _, _ in reasons} == ({reason} if reason else set())
    assert all(waited.endswith("s for a worker") for _, _, waited in reasons)


async def test_latest_of_the_fires_planned_ahead_runs_when_no_later_one_exists(app: dt.App) -> None:
    jobs = await planned_ahead(app, 45, 10, missed="latest", max_runs=10)
    assert states(jobs) == ["skipped"] * 9 + ["succeeded"]


async def test_fires_that_wait_for_the_one_before_are_not_missed(app: dt.App) -> None:
    """Overlap `queue`: they are late only because the job before them ran so long."""

    @app.task("work")
    async def work() -> None: ...

    await app.open()
    now = to_micros(datetime.now(UTC))
    cursor = now - 20 * SECOND
    options = {"missed": "skip", "overlap": "queue"}
    draft = schedule_draft(
        Ids(),
        "default",
        "minutely",
        "work",
        dt.Every("1s", anchor=to_datetime(now)),
        NO_DEFAULTS,
        now,
        options,
    )
    schedule = await put_schedule(app.store, draft, cursor, 0)
    assert schedule is not None
    before = scheduled_job(schedule, Ids().new(cursor - SECOND), cursor - SECOND, now)
    async with app.running(roles=["worker"]):
        await app.store.add_jobs([before])
        await (await app.get_job(before.id)).wait()
        await app.store.fire([plan_fires(schedule, cursor - SECOND, cursor + 2 * SECOND)])

        async def settled() -> bool:
            return all(job.state.final for job in await app.jobs(schedule="minutely"))

        await eventually(settled)
    assert states(await past(app, datetime.now(UTC))) == ["succeeded"] * 4


@pytest.fixture
def late_soon(monkeypatch: pytest.MonkeyPatch) -> int:
    """Fires count as late after so many microseconds."""
    lateness = SECOND // 5
    for module in (schedule_model, start_check, why_facts):
        monkeypatch.setattr(module, "LATE_AFTER", lateness)
    return lateness


@pytest.mark.parametrize("limited", ["task", "queue"])
@pytest.mark.parametrize(
    ("waiting", "expected"), [(False, ["succeeded"] * 3), (True, ["skipped", "skipped", "succeeded"])]
)
async def test_fires_that_wait_for_a_limit_are_missed_only_on_request(
    app: dt.App, late_soon: int, limited: str, waiting: bool, expected: list[str]
) -> None:
    release = asyncio.Event()

    @app.task("work", limit=dt.Limit(1) if limited == "task" else None)
    async def work() -> None:
        await release.wait()

    async with app.running(roles=["worker"]):
        if limited == "queue":
            await app.limit_queue("narrow", max_running=1)
        holder = await app.submit("work", queue="narrow")
        await eventually(lambda: is_running(app, holder))
        now = await app.now()
        draft = schedule_draft(
            Ids(), "default", "minutely", "work", dt.Every("100ms", anchor=to_datetime(now)), NO_DEFAULTS, now,
            {"missed": dt.Missed("latest", waiting=waiting), "max_runs": 3, "queue": "narrow"},
        )  # fmt: skip
        draft = replace(draft, limit_key="work" if limited == "task" else None)
        schedule = await put_schedule(app.store, draft, now, 0)
        assert schedule is not None
        assert await app.store.fire([plan_fires(schedule, now, now + SECOND)]) == 1

        async def late() -> bool:
            return await app.now() > now + 2 * SECOND // 10 + 2 * late_soon

        await eventually(late)
        release.set()

        async def settled() -> bool:
            return all(job.state.final for job in await app.jobs(schedule="minutely"))

        await eventually(settled)
        jobs = sorted(await app.jobs(schedule="minutely"), key=lambda job: job.fire_time)
    assert states(jobs) == expected
    name = "the limit work" if limited == "task" else "the limit of queue narrow"
    reasons = {str(job.error) for job in jobs if job.state == "skipped"}
    assert all(one.startswith("missed: policy latest; it waited ") and one.endswith(name) for one in reasons)


async def is_running(app: dt.App, job: dt.JobHandle) -> bool:
    return (await app.get_job(job.id)).state == "running"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"policy": "never"}, "missed.policy"),
        ({"within": "0s"}, "missed.within"),
        ({"within": "-1h"}, "missed.within"),
        ({"max": 0}, "missed.max"),
        ({"max": True}, "missed.max"),
        ({"max": 1_001}, "missed.max"),
        ({"policy": "latest", "max": 5}, "missed.max"),
        ({"policy": "skip", "max": 5}, "missed.max"),
        ({"policy": "skip", "within": "1h"}, "missed.within"),
        ({"waiting": "yes"}, "missed.waiting"),
    ],
)
def test_invalid_missed_policies_are_refused(options: dict[str, Any], field: str) -> None:
    with pytest.raises(dt.InvalidInput) as refused:
        dt.Missed(**options)
    assert refused.value.field == field

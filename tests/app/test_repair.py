"""Repairs: rescheduling pending jobs, reading attempts, retrying dead letters with another payload."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

import duetime as dt
from tests.app.waiting import soon

LATER = datetime(2031, 1, 1, tzinfo=UTC)


def sum_task(app: dt.App, **options: Any) -> dt.Task[..., Any]:
    @app.task("sum", retry=dt.Retry(max_attempts=1), **options)
    async def add(left: int, right: int) -> int:
        if left < 0:
            raise ValueError("negative")
        return left + right

    return add


async def test_pending_job_is_rescheduled(app: dt.App) -> None:
    await app.open()
    job = await app.submit("work", delay="1h")
    assert await job.reschedule(at=LATER, priority=9) is job
    assert (job.due_at, job.priority, job.state) == (LATER, 9, "pending")
    sooner = await app.reschedule_job(job.id, delay="30m")
    assert (sooner.due_at < LATER, sooner.priority) == (True, 9)


async def test_rescheduled_job_runs_at_its_new_time(app: dt.App) -> None:
    add = sum_task(app)
    async with app.running():
        job = await add.submit(left=1, right=2, delay="1h")
        await job.reschedule(delay="0s")
        assert (await job.wait("60s")).result == 3


async def test_running_and_final_jobs_cannot_be_rescheduled(app: dt.App) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @app.task("held")
    async def held() -> None:
        started.set()
        await release.wait()

    async with app.running():
        job = await held.submit()
        await soon(started)
        with pytest.raises(dt.Conflict, match="running"):
            await job.reschedule(delay="1h")
        release.set()
        await job.wait("60s")
        with pytest.raises(dt.JobFinished, match="succeeded"):
            await job.reschedule(delay="1h")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({}, "at"),
        ({"priority": 11}, "priority"),
        ({"at": LATER, "delay": "1h"}, "delay"),
        ({"at": datetime(2031, 1, 1)}, "at"),
        ({"delay": "soon"}, "delay"),
    ],
)
async def test_invalid_reschedules_are_refused(client: dt.App, changes: dict[str, Any], field: str) -> None:
    job = await client.submit("work", delay="1h")
    with pytest.raises(dt.InvalidInput) as refused:
        await job.reschedule(**changes)
    assert refused.value.field == field


async def test_rescheduling_an_unknown_job_is_refused(client: dt.App) -> None:
    with pytest.raises(dt.JobNotFound):
        await client.reschedule_job("01935c2e-7b3a-7000-8000-000000000000", delay="1h")


async def test_failed_attempts_are_listed(app: dt.App) -> None:
    @app.task("fail", retry=dt.Retry(max_attempts=3, first_delay="0s"))
    async def fail(ctx: dt.Context) -> None:
        raise ValueError(f"number {ctx.attempt}")

    async with app.running():
        job = await (await fail.submit()).wait("60s")
        attempts = await job.attempts()
    assert [(one.attempt, one.ending) for one in attempts] == [(1, "failed"), (2, "failed"), (3, "failed")]
    assert all(f"number {one.attempt}" in (one.error or "") for one in attempts)
    assert all(one.started_at is not None and one.started_at.tzinfo is UTC for one in attempts)
    assert all(one.started_at <= one.finished_at for one in attempts if one.started_at is not None)


async def test_a_dead_letter_runs_again_with_another_payload(app: dt.App) -> None:
    add = sum_task(
        app, unique=True, limit=dt.Limit(2, per="left"), version=2, upgrade=lambda version, payload: payload
    )
    async with app.running():
        dead = await (await add.submit(left=-1, right=2)).wait("60s")
        assert dead.state == "dead"
        again = await dead.retry(payload={"left": 1, "right": 2})
        await again.wait("60s")
        assert (again.result, again.record.retry_of, again.payload) == (3, dead.id, {"left": 1, "right": 2})
        assert (again.record.limit_key, again.record.unique_key) == ("sum/1", 'sum/{"left":1,"right":2}')
        assert again.record.policies == b'{"version":2}'
        with pytest.raises(dt.JobFinished):
            await dead.retry()


async def test_a_payload_that_does_not_fit_is_refused_and_the_letter_stays(app: dt.App) -> None:
    add = sum_task(app)
    async with app.running():
        dead = await (await add.submit(left=-1, right=2)).wait("60s")
        with pytest.raises(dt.InvalidPayload, match="right"):
            await dead.retry(payload={"left": 1})
        with pytest.raises(dt.InvalidPayload, match="left"):
            await dead.retry(payload={"left": "one", "right": 2})
        with pytest.raises(dt.UnknownOption):
            await dead.retry(payload={"left": 1, "right": 2, "middle": 3})
        assert (await (await dead.retry()).wait("60s")).state == "dead"


async def test_every_repair_has_its_blocking_twin(app: dt.App) -> None:
    sum_task(app)

    def script() -> list[Any]:
        dead = app.sync.submit("sum", left=-1, right=2).wait("60s")
        again = dead.retry(payload={"left": 1, "right": 2}).wait("60s", raise_on_failure=True)
        late = app.sync.submit("sum", left=1, right=1, delay="1h")
        late.reschedule(priority=9)
        paused = app.sync.pause_queue("mail").paused
        return [
            again.result,
            [one.ending for one in dead.attempts()]
            == [one.ending for one in app.sync.read_attempts(dead.id)],
            app.sync.reschedule_job(late.id, at=LATER).due_at,
            late.refresh().priority,
            [paused, app.sync.resume_queue("mail").paused, app.sync.limit_queue("mail", 2).max_running],
            "mail" in [queue.name for queue in app.sync.queues()],
        ]

    async with app.running():
        assert await asyncio.to_thread(script) == [3, True, LATER, 9, [True, False, 2], True]

"""Planned faults: after a crash the next attempt continues from the last checkpoint, and no code of the
killed node runs."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta
from typing import Any

import pytest

import duetime as dt
from duetime import testing
from duetime.errors import InvalidInput

Steps = list[tuple[int, Any]]


@pytest.fixture
def steps() -> Steps:
    return []


@pytest.fixture
def copy(app: dt.App, steps: Steps) -> dt.Task[..., Any]:
    """Takes ten minutes per page and records how it ends."""

    @app.task("copy", retry=dt.Retry(max_attempts=2))
    async def copy(ctx: dt.Context, pages: int = 4) -> str:
        try:
            for page in range(ctx.last_checkpoint or 0, pages):
                steps.append((ctx.attempt, page))
                await asyncio.sleep(600)
                await ctx.checkpoint(page + 1)
        finally:
            steps.append((ctx.attempt, "finally"))
        return f"attempt {ctx.attempt}"

    return copy


async def test_crash_after_a_checkpoint_resumes_there(
    app: dt.App, copy: dt.Task[..., Any], steps: Steps
) -> None:
    async with testing.virtual(app) as time:
        began = time.now
        time.crash_at(copy, checkpoint=2)
        job = await (await copy.submit()).wait()
        assert steps == [(1, 0), (1, 1), (2, 2), (2, 3), (2, "finally")]
        assert (job.state, job.result, job.failures) == (dt.State.SUCCEEDED, "attempt 2", 0)
        assert time.now - began == timedelta(minutes=40)
        assert [attempt.ending for attempt in await job.attempts()] == ["lost"]
        assert [node.dead for node in await app.nodes()] == [True, False]
        assert time.faults_left == []


async def test_crash_before_a_checkpoint_repeats_the_step(
    app: dt.App, copy: dt.Task[..., Any], steps: Steps
) -> None:
    async with testing.virtual(app) as time:
        time.crash_at("copy", checkpoint=2, before=True)
        await (await copy.submit()).wait()
        assert steps == [(1, 0), (1, 1), (2, 1), (2, 2), (2, 3), (2, "finally")]


async def test_finally_blocks_of_a_killed_node_run_at_the_end_of_the_test(
    app: dt.App, copy: dt.Task[..., Any], steps: Steps
) -> None:
    """Not earlier, and not whenever the garbage collector runs."""
    async with testing.virtual(app) as time:
        time.crash_at(copy, checkpoint=1)
        await (await copy.submit(pages=1)).wait()
        assert (1, "finally") not in steps
    assert steps[-1] == (1, "finally")


async def test_crash_after_the_call_runs_the_job_again(app: dt.App, steps: Steps) -> None:
    """The mail is sent, the node dies, the job runs again. `once` prevents the second mail."""

    @app.task("mail")
    async def mail(ctx: dt.Context, careful: bool) -> None:
        if not careful or await ctx.once("sent"):
            steps.append((ctx.attempt, "sent"))

    async with testing.virtual(app) as time:
        time.crash_at(mail, call=1)
        await (await mail.submit(careful=False)).wait()
        assert steps == [(1, "sent"), (2, "sent")]
        steps.clear()
        time.crash_at(mail, call=1)
        await (await mail.submit(careful=True)).wait()
        assert steps == [(1, "sent")]
        steps.clear()
        time.crash_at(mail, once=1)
        await (await mail.submit(careful=True)).wait()
        assert steps == []


async def test_crash_before_the_call_runs_the_job_once(app: dt.App, steps: Steps) -> None:
    @app.task("note")
    async def note(ctx: dt.Context) -> None:
        steps.append((ctx.attempt, "ran"))

    async with testing.virtual(app) as time:
        time.crash_at(note, call=2, before=True)
        await (await note.submit()).wait()
        await (await note.submit()).wait()
        assert steps == [(1, "ran"), (2, "ran")]


async def test_crash_ends_all_jobs_of_the_node(app: dt.App, copy: dt.Task[..., Any], steps: Steps) -> None:
    """Another job that sleeps is lost as well. It counts no failure and runs again from its start."""

    @app.task("sleeper")
    async def sleeper(ctx: dt.Context) -> None:
        steps.append((ctx.attempt, "slept"))
        await asyncio.sleep(3600)

    async with testing.virtual(app) as time:
        other = await sleeper.submit()
        time.crash_at(copy, checkpoint=1)
        await copy.submit(pages=1)
        await time.run_until_idle()
        await other.refresh()
        assert (other.state, other.attempt, other.failures) == (dt.State.SUCCEEDED, 2, 0)
        assert [step for step in steps if step[1] == "slept"] == [(1, "slept"), (2, "slept")]


async def test_no_code_of_a_killed_node_runs(
    app: dt.App, copy: dt.Task[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Another job that never waits is in the middle of its steps when the node dies. Nothing is logged
    afterwards either."""
    counted: dict[int, int] = {1: 0, 2: 0}

    @app.task("restless")
    async def restless(ctx: dt.Context) -> None:
        for _ in range(1_000):
            await asyncio.sleep(0)
            counted[ctx.attempt] += 1

    async with testing.virtual(app) as time:
        time.crash_at(copy, call=1)
        await restless.submit()
        await copy.submit(pages=0)
        await time.run_until_idle()
    assert 0 < counted[1] < 1_000
    assert counted[2] == 1_000
    await asyncio.sleep(0)
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.parametrize("max_losses", [1, 3])
async def test_job_that_crashes_its_node_repeatedly_becomes_dead(app: dt.App, max_losses: int) -> None:
    @app.task("crash", retry=dt.Retry(max_losses=max_losses))
    async def crash(ctx: dt.Context) -> None:
        attempts.append(ctx.attempt)

    attempts: list[int] = []
    async with testing.virtual(app) as time:
        for call in range(1, 10):
            time.crash_at(crash, call=call)
        job = await (await crash.submit()).wait()
        assert job.state is dt.State.DEAD
        assert (job.error or "").startswith("poison: ")
        assert attempts == list(range(1, 3 + max_losses)), "two losses are free, the others are charged"


async def test_losses_expire(app: dt.App) -> None:
    """A long job whose node dies now and then is not poison."""
    crashes = 6

    @app.task("long", retry=dt.Retry(max_losses=1))
    async def long() -> None:
        await asyncio.sleep(20 * 3600)

    async with testing.virtual(app) as time:
        for call in range(1, crashes + 1):
            time.crash_at(long, call=call)
        job = await (await long.submit()).wait()
        assert (job.state, job.attempt, job.failures) == ("succeeded", crashes + 1, 0)


async def test_crash_ends_a_sync_task(app: dt.App, steps: Steps) -> None:
    @app.task("sync_task")
    def sync_task(ctx: dt.Context) -> str:
        for page in range(ctx.last_checkpoint or 0, 3):
            steps.append((ctx.attempt, page))
            ctx.sync.checkpoint(page + 1)
        return "done"

    async with testing.virtual(app) as time:
        time.crash_at(sync_task, checkpoint=2)
        job = await (await sync_task.submit()).wait()
        assert (job.result, job.attempt, job.failures) == ("done", 2, 0)
        assert steps == [(1, 0), (1, 1), (2, 2)]


async def test_schedules_fire_after_a_crash_of_the_planner(app: dt.App, copy: dt.Task[..., Any]) -> None:
    fired: list[int] = []

    @app.task("tick")
    async def tick(ctx: dt.Context) -> None:
        fired.append(ctx.fire_time.hour)

    async with testing.virtual(app, start="2026-11-16T00:30Z") as time:
        await app.schedule("hourly", tick, dt.Cron("0 * * * *"))
        time.crash_at(tick, call=3, before=True)
        await time.run_until("06:00")
        assert fired == [1, 2, 3, 4, 5, 6]


async def test_fail_at_raises_the_given_error(app: dt.App, steps: Steps) -> None:
    @app.task("pay", retry=dt.Retry(max_attempts=3, first_delay="1s"))
    async def pay(ctx: dt.Context) -> None:
        steps.append((ctx.attempt, "paid"))

    async with testing.virtual(app) as time:
        time.fail_at(pay, call=1, error=ConnectionError("no route"))
        time.fail_at(pay, call=2, error=TimeoutError("slow"), before=False)
        job = await (await pay.submit()).wait()
        assert (job.state, job.attempt, job.failures) == (dt.State.SUCCEEDED, 3, 2)
        assert steps == [(2, "paid"), (3, "paid")]
        assert ["no route" in (one.error or "") for one in await job.attempts()] == [True, False]


async def test_lost_reply_of_submit_and_settle(app: dt.App, copy: dt.Task[..., Any], steps: Steps) -> None:
    """The job is stored although submit fails. The settlement is written although the worker gets no reply;
    the worker repeats it."""
    async with testing.virtual(app) as time:
        time.lose_reply("add_jobs")
        with pytest.raises(dt.StoreUnavailable, match="planned to lose the reply"):
            await copy.submit(pages=1)
        time.lose_reply("settle")
        began = time.now
        await time.run_until_idle()
        assert time.now - began < timedelta(minutes=11)
        assert steps == [(1, 0), (1, "finally")]
        assert [job.state for job in await app.jobs()] == [dt.State.SUCCEEDED]


async def test_job_runs_soon_after_a_lost_claim_reply(app: dt.App, copy: dt.Task[..., Any]) -> None:
    async with testing.virtual(app) as time:
        began = time.now
        time.lose_reply("claim")
        job = await (await copy.submit(pages=0)).wait()
        assert (job.state, job.attempt) == (dt.State.SUCCEEDED, 2)
        assert time.now - began < timedelta(seconds=5)


async def test_invalid_faults_are_refused(app: dt.App, copy: dt.Task[..., Any]) -> None:
    async with testing.virtual(app) as time:
        with pytest.raises(InvalidInput, match="exactly one of checkpoint, call, once"):
            time.crash_at(copy)
        with pytest.raises(InvalidInput, match="at least 1"):
            time.crash_at(copy, checkpoint=0)
        with pytest.raises(InvalidInput, match="'copi' is not a task of this app; its tasks are copy"):
            time.crash_at("copi", checkpoint=1)
        with pytest.raises(InvalidInput, match="is not one of add_jobs"):
            time.lose_reply("open")
        time.crash_at(copy, checkpoint=9)
        await (await copy.submit()).wait()
        assert time.faults_left == ["checkpoint of copy"]

"""Crashes in the middle of the user's own task: the next attempt goes on from what was saved, and nothing of the dead one runs (E, C)."""

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
    """Ten minutes a page; says how it ends, should it be let."""

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


async def test_killed_after_the_second_checkpoint(app: dt.App, copy: dt.Task[..., Any], steps: Steps) -> None:
    async with testing.virtual(app) as time:
        began = time.now
        time.crash_at(copy, checkpoint=2)
        job = await (await copy.submit()).wait()
        assert steps == [(1, 0), (1, 1), (2, 2), (2, 3), (2, "finally")]
        assert (job.state, job.result, job.failures) == (dt.State.SUCCEEDED, "attempt 2", 0)
        assert time.now - began == timedelta(minutes=40)
        assert [attempt.ending for attempt in await job.attempts()] == ["lost"]
        assert [node.dead for node in await app.nodes()] == [True, False]
        assert time.accidents_left == []


async def test_killed_before_the_second_checkpoint_does_the_page_again(app: dt.App, copy: dt.Task[..., Any], steps: Steps) -> None:
    async with testing.virtual(app) as time:
        time.crash_at("copy", checkpoint=2, before=True)
        await (await copy.submit()).wait()
        assert steps == [(1, 0), (1, 1), (2, 1), (2, 2), (2, 3), (2, "finally")]


async def test_the_dead_are_unwound_when_all_is_over(app: dt.App, copy: dt.Task[..., Any], steps: Steps) -> None:
    """Not earlier, and not at a moment the garbage collector chooses."""
    async with testing.virtual(app) as time:
        time.crash_at(copy, checkpoint=1)
        await (await copy.submit(pages=1)).wait()
        assert (1, "finally") not in steps
    assert steps[-1] == (1, "finally")


async def test_killed_when_done_and_not_yet_recorded(app: dt.App, steps: Steps) -> None:
    """The classic: the mail is sent, the node dies, the job is run again. `once` is the remedy."""

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


async def test_killed_before_the_call(app: dt.App, steps: Steps) -> None:
    @app.task("note")
    async def note(ctx: dt.Context) -> None:
        steps.append((ctx.attempt, "ran"))

    async with testing.virtual(app) as time:
        time.crash_at(note, call=2, before=True)
        await (await note.submit()).wait()
        await (await note.submit()).wait()
        assert steps == [(1, "ran"), (2, "ran")]


async def test_everything_on_the_node_dies_with_it(app: dt.App, copy: dt.Task[..., Any], steps: Steps) -> None:
    """A neighbour that sleeps is lost too, is not charged for it, and runs again from its start."""

    @app.task("neighbour")
    async def neighbour(ctx: dt.Context) -> None:
        steps.append((ctx.attempt, "slept"))
        await asyncio.sleep(3600)

    async with testing.virtual(app) as time:
        other = await neighbour.submit()
        time.crash_at(copy, checkpoint=1)
        await copy.submit(pages=1)
        await time.run_until_idle()
        await other.refresh()
        assert (other.state, other.attempt, other.failures) == (dt.State.SUCCEEDED, 2, 0)
        assert [step for step in steps if step[1] == "slept"] == [(1, "slept"), (2, "slept")]


async def test_nothing_of_the_dead_runs_on(app: dt.App, copy: dt.Task[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    """A neighbour that never waits is in the middle of its steps when the node dies. Afterwards nobody complains either."""
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


async def test_a_task_that_kills_its_node_again_and_again_is_dead_lettered(app: dt.App, copy: dt.Task[..., Any]) -> None:
    async with testing.virtual(app) as time:
        for call in (1, 2, 3):
            time.crash_at(copy, call=call, before=True)
        job = await (await copy.submit()).wait()
        assert job.state is dt.State.DEAD
        assert "poison" in (job.error or "")


async def test_a_plain_function_is_taken_down_by_the_crash(app: dt.App, steps: Steps) -> None:
    @app.task("plain")
    def plain(ctx: dt.Context) -> str:
        for page in range(ctx.last_checkpoint or 0, 3):
            steps.append((ctx.attempt, page))
            ctx.sync.checkpoint(page + 1)
        return "done"

    async with testing.virtual(app) as time:
        time.crash_at(plain, checkpoint=2)
        job = await (await plain.submit()).wait()
        assert (job.result, job.attempt, job.failures) == ("done", 2, 0)
        assert steps == [(1, 0), (1, 1), (2, 2)]


async def test_schedules_survive_the_crash_of_their_planner(app: dt.App, copy: dt.Task[..., Any]) -> None:
    fired: list[int] = []

    @app.task("tick")
    async def tick(ctx: dt.Context) -> None:
        fired.append(ctx.fire_time.hour)

    async with testing.virtual(app, start="2026-11-16T00:30Z") as time:
        await app.schedule("hourly", tick, dt.Cron("0 * * * *"))
        time.crash_at(tick, call=3, before=True)
        await time.run_until("06:00")
        assert fired == [1, 2, 3, 4, 5, 6]


async def test_a_call_fails_as_told(app: dt.App, steps: Steps) -> None:
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


async def test_a_reply_gets_lost(app: dt.App, copy: dt.Task[..., Any], steps: Steps) -> None:
    """The job is stored although the caller does not hear of it; the completion is written although the worker does not: it asks again."""
    async with testing.virtual(app) as time:
        time.lose_reply("add_jobs")
        with pytest.raises(dt.StoreUnavailable, match="as the test wanted"):
            await copy.submit(pages=1)
        time.lose_reply("settle")
        began = time.now
        await time.run_until_idle()
        assert time.now - began < timedelta(minutes=11)
        assert steps == [(1, 0), (1, "finally")]
        assert [job.state for job in await app.jobs()] == [dt.State.SUCCEEDED]


async def test_a_claim_whose_reply_is_lost_is_noticed_soon(app: dt.App, copy: dt.Task[..., Any]) -> None:
    async with testing.virtual(app) as time:
        began = time.now
        time.lose_reply("claim")
        job = await (await copy.submit(pages=0)).wait()
        assert (job.state, job.attempt) == (dt.State.SUCCEEDED, 2)
        assert time.now - began < timedelta(seconds=5)


async def test_slips_are_refused(app: dt.App, copy: dt.Task[..., Any]) -> None:
    async with testing.virtual(app) as time:
        with pytest.raises(InvalidInput, match="exactly one of checkpoint, call, once"):
            time.crash_at(copy)
        with pytest.raises(InvalidInput, match="at least 1"):
            time.crash_at(copy, checkpoint=0)
        with pytest.raises(InvalidInput, match="'copi' is no task of this app: it has copy"):
            time.crash_at("copi", checkpoint=1)
        with pytest.raises(InvalidInput, match="is not one of add_jobs"):
            time.lose_reply("open")
        time.crash_at(copy, checkpoint=9)
        await (await copy.submit()).wait()
        assert time.accidents_left == ["checkpoint of copy"]

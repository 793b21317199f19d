"""What a task can do while it runs, on every store: snooze, retry later, cancel, checkpoints, progress,
once-markers."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest

import duetime as dt
from duetime import testing
from duetime.errors import Fenced
from duetime.model.job import Ending
from duetime.model.settle import Cancel, RetryAfter, Snooze
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually, soon

AT_ONCE = dt.Retry(max_attempts=3, first_delay="0s")


async def ended(app: dt.App, task: dt.Task[..., Any], **options: Any) -> dt.JobHandle:
    async with app.running():
        return await (await task.submit(**options)).wait("60s")


async def endings(app: dt.App, job: dt.JobHandle) -> list[Ending]:
    return [attempt.ending for attempt in await app.store.list_attempts(job.id)]


# -- verdicts
# ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("raised", [True, False])
async def test_snooze_runs_the_job_again_without_counting(app: dt.App, raised: bool) -> None:
    @app.task("work", retry=dt.Retry(max_attempts=1))
    async def work(ctx: dt.Context) -> Any:
        if ctx.attempt < 4:
            verdict = Snooze("10ms", "no stock yet")
            if raised:
                raise verdict
            return verdict
        return ctx.attempt

    async with app.running():
        job = await (await work.submit()).wait("60s")
        assert (job.state, job.result, job.failures) == ("succeeded", 4, 0)
        assert await endings(app, job) == [Ending.SNOOZED] * 3


async def test_retry_after_waits_and_counts_as_failure(app: dt.App) -> None:
    @app.task("work", retry=dt.Retry(max_attempts=2, first_delay="1h"))
    async def work(ctx: dt.Context) -> Any:
        raise RetryAfter("20ms", "429")

    job = await ended(app, work)
    assert (job.state, job.attempt, job.failures, job.error) == ("dead", 2, 2, "429")


@pytest.mark.parametrize(
    "verdict",
    [Cancel, partial(RetryAfter, "10ms"), partial(Snooze, "10ms")],
    ids=["cancel", "retry", "snooze"],
)
@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("no file \udcff.csv", "no file ?.csv"),
        ("nul \0 inside", "nul \ufffd inside"),
        (ValueError("gone"), "gone"),
    ],
    ids=["surrogate", "nul", "error"],
)
async def test_a_reason_that_no_store_could_hold_is_made_storable(
    app: dt.App, verdict: Any, reason: Any, kept: str
) -> None:
    """Names of files come with such halves of characters. A settlement that cannot be written would hold up
    all others of its node."""

    @app.task("work", retry=dt.Retry(max_attempts=2))
    async def work(ctx: dt.Context) -> Any:
        return verdict(reason=reason) if ctx.attempt == 1 else None

    async with app.running():
        job = await (await work.submit()).wait("60s")
        endings = [attempt.error for attempt in await job.attempts()]
    assert endings == [kept]


async def test_long_reason_is_truncated(memory_app: dt.App) -> None:
    @memory_app.task("work")
    async def work() -> Any:
        return Cancel("x" * 1_000_000 + " end")

    job = await ended(memory_app, work)
    assert job.error is not None
    assert len(job.error) < 10_000
    assert job.error.endswith(" end")


async def test_a_task_can_cancel_its_job(app: dt.App) -> None:
    @app.task("work")
    def work() -> Any:
        return Cancel("the order is gone")

    job = await ended(app, work)
    assert (job.state, job.attempt, job.failures, job.error) == ("cancelled", 1, 0, "the order is gone")


async def test_a_plain_function_can_raise_a_verdict_from_deep_inside(app: dt.App) -> None:
    @app.task("work")
    def work(ctx: dt.Context) -> int:
        if ctx.attempt == 1:
            raise Snooze("10ms")
        return ctx.attempt

    job = await ended(app, work)
    assert (job.state, job.result) == ("succeeded", 2)


# -- retries
# ----------------------------------------------------------------------------------------------------------
async def test_errors_outside_retry_on_are_not_retried(memory_app: dt.App) -> None:
    @memory_app.task(
        "work", retry=dt.Retry(retry_on=[ConnectionError], give_up_on=[ConnectionRefusedError], delays=["0s"])
    )
    async def work(ctx: dt.Context, kind: str) -> None:
        raise {"worth": ConnectionError, "not": ValueError, "never": ConnectionRefusedError}[kind](kind)

    async with memory_app.running():
        jobs = [await work.submit(kind=kind) for kind in ("worth", "not", "never")]
        for job in jobs:
            await job.wait("60s")
    assert [(job.state, job.attempt) for job in jobs] == [("dead", 5), ("dead", 1), ("dead", 1)]
    assert "not tried again" in (jobs[1].error or "")


async def test_a_timeout_can_be_given_up_on(memory_app: dt.App) -> None:
    @memory_app.task("work", timeout="20ms", retry=dt.Retry(give_up_on=TimeoutError, first_delay="0s"))
    async def work() -> None:
        await asyncio.Event().wait()

    job = await ended(memory_app, work)
    assert (job.state, job.attempt) == ("dead", 1)


async def test_each_attempt_has_the_whole_timeout(memory_app: dt.App) -> None:
    """Two attempts that take most of it each: the second is not charged with the first."""

    @memory_app.task("work", timeout="40s", retry=AT_ONCE)
    async def work(ctx: dt.Context) -> int:
        await asyncio.sleep(25)
        if ctx.attempt == 1:
            raise ValueError
        return ctx.attempt

    async with testing.virtual(memory_app):
        job = await (await work.submit()).wait()
    assert (job.state, job.attempt) == ("succeeded", 2)


async def test_a_custom_delay_is_asked_with_what_went_wrong(memory_app: dt.App) -> None:
    asked: list[tuple[int, str]] = []

    def delay(failures: int, error: BaseException) -> str:
        asked.append((failures, str(error)))
        return "0s"

    @memory_app.task("work", retry=dt.Retry(max_attempts=3, delay=delay))
    async def work(ctx: dt.Context) -> None:
        raise ValueError(f"attempt {ctx.attempt}")

    await ended(memory_app, work)
    assert asked == [(1, "attempt 1"), (2, "attempt 2")]


# -- checkpoints, progress, marks
# -------------------------------------------------------------------------------------
@pytest.mark.parametrize("plain", [True, False])
async def test_the_next_attempt_goes_on_from_the_last_checkpoint(app: dt.App, plain: bool) -> None:
    done: list[int] = []

    def fail_at(ctx: dt.Context, step: int) -> None:
        done.append(step)
        if len(done) in (3, 7):
            raise ValueError(f"step {step}")

    def in_thread(ctx: dt.Context) -> list[int]:
        for step in range(ctx.last_checkpoint or 0, 8):
            fail_at(ctx, step)
            ctx.sync.checkpoint(step + 1)
        return done

    async def in_loop(ctx: dt.Context) -> list[int]:
        for step in range(ctx.last_checkpoint or 0, 8):
            fail_at(ctx, step)
            await ctx.checkpoint(step + 1)
        return done

    job = await ended(app, app.task("work", retry=AT_ONCE)(in_thread if plain else in_loop))
    assert (job.state, job.attempt) == ("succeeded", 3)
    assert job.result == [0, 1, 2, 2, 3, 4, 5, 5, 6, 7], "each step once, and the two that failed once more"


async def test_a_shutdown_keeps_the_checkpoint_and_is_not_the_task_s_failure(make_app: MakeApp) -> None:
    """Interrupted by shutdown never counts."""

    def declare(app: dt.App) -> tuple[dt.Task[..., Any], asyncio.Event]:
        begun = asyncio.Event()

        @app.task("work", retry=dt.Retry(max_attempts=1))
        async def work(ctx: dt.Context) -> Any:
            if ctx.last_checkpoint is None:
                await ctx.checkpoint({"rows": 7})
                begun.set()
                await asyncio.Event().wait()
            return ctx.last_checkpoint

        return work, begun

    first, second = make_app(), make_app()
    work, begun = declare(first)
    declare(second)
    async with first.running(grace="10ms"):
        job = await work.submit()
        await soon(begun)
    async with second.running():
        job = await second.get_job(job.id)
        await job.wait("60s")
    assert (job.state, job.result, job.attempt, job.failures) == ("succeeded", {"rows": 7}, 2, 0)


async def test_progress_is_seen_while_it_runs_and_the_last_one_stays(app: dt.App) -> None:
    go_on = asyncio.Event()

    @app.task("work")
    async def work(ctx: dt.Context) -> None:
        await ctx.progress(1, 3, "rows")
        await go_on.wait()
        await ctx.progress(2, 3)
        await ctx.progress(3, 3, "done")

    async with app.running():
        job = await work.submit()

        async def told() -> bool:
            progress = (await app.read_job(job.id)).progress
            return progress is not None and json.loads(progress) == {"done": 1, "total": 3, "note": "rows"}

        await eventually(told)
        go_on.set()
        await job.wait("60s")
        progress = (await app.read_job(job.id)).progress
    assert json.loads(progress or b"") == {"done": 3, "total": 3, "note": "done"}


@pytest.mark.parametrize("plain", [True, False])
async def test_once_marker_guards_against_repetition(app: dt.App, plain: bool) -> None:
    mails: list[int] = []

    def in_thread(ctx: dt.Context) -> None:
        if ctx.sync.once("mail"):
            mails.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError

    async def in_loop(ctx: dt.Context) -> None:
        if await ctx.once("mail"):
            mails.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError

    job = await ended(app, app.task("work", retry=AT_ONCE)(in_thread if plain else in_loop))
    assert (job.state, mails) == ("succeeded", [1])


@pytest.mark.slow
async def test_attempt_that_lost_its_job_is_fenced_at_the_next_checkpoint(app: dt.App) -> None:
    """The store has given the job to another node in between."""
    begun, fenced = asyncio.Event(), asyncio.Event()

    @app.task("work")
    async def work(ctx: dt.Context) -> int:
        if ctx.attempt == 1:
            begun.set()
            try:
                while True:
                    await ctx.checkpoint(ctx.attempt)
                    await asyncio.sleep(0.01)
            except Fenced:
                fenced.set()
                raise
        return ctx.attempt

    async with app.running() as node:
        job = await work.submit()
        await soon(begun)
        assert node.id is not None
        await app.store.leave(node.id)  # as if it were dead
        await soon(fenced)
        await job.wait("60s")
    assert (job.state, job.failures) == ("succeeded", 0)
    assert job.result > 1

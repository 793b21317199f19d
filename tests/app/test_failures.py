"""Failures, retries, timeouts and dead letters: a job always ends in a known state and its worker
continues."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import duetime as dt
from tests.app.waiting import soon

AT_ONCE = dt.Retry(max_attempts=3, first_delay="0s")
ONCE = dt.Retry(max_attempts=1)


async def ended(app: dt.App, task: dt.Task[..., Any], **options: Any) -> dt.JobHandle:
    """The job once it is over, with the worker shown to be alive after it."""

    @app.task("canary")
    async def canary() -> str:
        return "alive"

    async with app.running():
        job = await (await task.submit(**options)).wait("60s")
        assert (await (await canary.submit()).wait("60s")).result == "alive"
    return job


async def test_a_failure_is_retried_until_it_succeeds(app: dt.App) -> None:
    @app.task("work", retry=AT_ONCE)
    async def work(ctx: dt.Context) -> int:
        if ctx.attempt < 3:
            raise ValueError(f"attempt {ctx.attempt}")
        return ctx.attempt

    job = await ended(app, work)
    assert (job.state, job.attempt, job.failures, job.result) == ("succeeded", 3, 2, 3)


async def test_every_attempt_has_the_same_key_and_a_higher_number(app: dt.App) -> None:
    seen: list[tuple[str, int]] = []

    @app.task("work", retry=AT_ONCE)
    async def work(ctx: dt.Context) -> None:
        seen.append((ctx.idempotency_key, ctx.attempt))
        raise ValueError

    job = await ended(app, work)
    assert seen == [(str(job.id), 1), (str(job.id), 2), (str(job.id), 3)]


async def test_spent_retries_make_a_dead_letter_with_its_error(app: dt.App) -> None:
    @app.task("work", retry=AT_ONCE)
    async def work() -> None:
        raise ValueError("the printer is on fire")

    job = await ended(app, work)
    assert (job.state, job.attempt, job.failures, job.result) == ("dead", 3, 3, None)
    assert job.error is not None
    assert job.error.endswith("ValueError: the printer is on fire")
    assert "in work" in job.error
    assert "perform.py" not in job.error


async def test_job_can_have_its_own_retry(memory_app: dt.App) -> None:
    @memory_app.task("work", retry=AT_ONCE)
    async def work() -> None:
        raise ValueError

    job = await ended(memory_app, work, retry=ONCE)
    assert (job.state, job.attempt) == ("dead", 1)


async def test_retry_waits_for_its_delay(memory_app: dt.App) -> None:
    failed = asyncio.Event()

    @memory_app.task("work", retry=dt.Retry(max_attempts=2, first_delay="1h", max_delay="1h"))
    async def work() -> None:
        failed.set()
        raise ValueError("not yet")

    async with memory_app.running():
        job = await work.submit()
        await soon(failed)
        with pytest.raises(dt.WaitTimeout):
            await job.wait("200ms")
        await job.refresh()
    assert (job.state, job.failures, job.attempt) == ("pending", 1, 1)
    assert job.due_at > job.fire_time


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
@pytest.mark.parametrize(
    "problem",
    [
        ValueError("wrong"),
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError("not asked for"),
        GeneratorExit(),
        StopIteration(7),
        StopAsyncIteration(),
        RecursionError("too deep"),
        MemoryError(),
        BaseExceptionGroup("several", [ValueError("one"), SystemExit()]),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        ValueError("nul \0 and surrogate \ud800"),
    ],
    ids=lambda problem: type(problem).__name__,
)
async def test_any_exception_is_a_failure_of_the_task(plain: bool, problem: BaseException) -> None:
    app = dt.App("memory://")

    async def raises() -> None:
        raise problem

    def raises_too() -> None:
        raise problem

    job = await ended(app, app.task("work", retry=ONCE)(raises_too if plain else raises))
    assert job.state == "dead"
    assert job.error


async def test_an_error_text_that_no_store_could_hold_is_made_storable(app: dt.App) -> None:

    @app.task("work", retry=ONCE)
    async def work() -> None:
        raise ValueError("nul \0 and surrogate \ud800 end")

    job = await ended(app, work)
    assert job.error is not None
    assert "\0" not in job.error
    assert job.error.endswith("end")


async def test_huge_error_text_is_truncated(memory_app: dt.App) -> None:

    @memory_app.task("work", retry=ONCE)
    async def work() -> None:
        raise ValueError("x" * 10_000_000)

    job = await ended(memory_app, work)
    assert job.error is not None
    assert len(job.error) < 10_000
    assert "truncated" in job.error


async def test_an_exception_that_cannot_be_shown_is_a_failure_like_any_other(memory_app: dt.App) -> None:
    class Unshowable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text for you")

    @memory_app.task("work", retry=ONCE)
    async def work() -> None:
        raise Unshowable

    job = await ended(memory_app, work)
    assert job.state == "dead"
    assert "Unshowable" in (job.error or "")


@pytest.mark.parametrize(
    "result",
    [object(), {1, 2, object()}, b"\xff" * 400_000, "x" * 300_000, "\ud800", float],
    ids=lambda value: type(value).__name__,
)
async def test_results_that_cannot_be_kept_are_left_out_with_a_reason(result: Any) -> None:
    app = dt.App("memory://")

    @app.task("work", retry=AT_ONCE)
    async def work() -> Any:
        return result

    job = await ended(app, work)
    assert (job.state, job.attempt, job.result) == ("succeeded", 1, None)
    assert (job.error or "").startswith("succeeded without a result: ")


async def test_result_is_returned(app: dt.App) -> None:
    results: list[Any] = [None, 0, "", [], {"a": [1, None]}, False, 1.5, "ünï\0"]

    @app.task("work")
    async def work(which: int) -> Any:
        return results[which]

    async with app.running():
        jobs = [await work.submit(which=which) for which in range(len(results))]
        assert [(await job.wait("60s")).result for job in jobs] == results
        assert {job.state for job in jobs} == {"succeeded"}


async def test_a_timeout_stops_the_attempt_and_counts_as_a_failure(app: dt.App) -> None:
    stopped: list[int] = []

    @app.task("work", timeout="50ms", retry=dt.Retry(max_attempts=2, first_delay="0s"))
    async def work(ctx: dt.Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(ctx.attempt)

    job = await ended(app, work)
    assert (job.state, job.failures, job.error, stopped) == ("dead", 2, "timed out", [1, 2])


async def test_job_can_have_its_own_timeout(memory_app: dt.App) -> None:
    @memory_app.task("work", timeout="1h", retry=ONCE)
    async def work() -> None:
        await asyncio.Event().wait()

    job = await ended(memory_app, work, timeout="50ms")
    assert (job.state, job.error) == ("dead", "timed out")


async def test_a_plain_function_times_out_too(memory_app: dt.App) -> None:
    release = threading.Event()

    @memory_app.task("work", timeout="50ms", retry=ONCE)
    def work() -> None:
        release.wait(120)

    try:
        job = await ended(memory_app, work)
    finally:
        release.set()
    assert (job.state, job.error) == ("dead", "timed out")


async def test_task_that_ends_in_time_succeeds_despite_its_timeout(memory_app: dt.App) -> None:
    @memory_app.task("work", timeout="10s")
    async def work() -> str:
        return "in time"

    assert (await ended(memory_app, work)).result == "in time"


async def test_at_most_once_is_never_retried(app: dt.App) -> None:

    @app.task("work", delivery="at_most_once", retry=AT_ONCE)
    async def work() -> None:
        raise ValueError

    job = await ended(app, work)
    assert (job.state, job.attempt) == ("dead", 1)


async def test_job_can_ask_for_at_most_once(memory_app: dt.App) -> None:
    @memory_app.task("work", retry=AT_ONCE)
    async def work() -> None:
        raise ValueError

    job = await ended(memory_app, work, delivery=dt.Delivery.AT_MOST_ONCE)
    assert (job.state, job.attempt) == ("dead", 1)


async def dead_letter(app: dt.App, **options: Any) -> dt.JobHandle:
    """A dead letter of a task that fails as a first job and succeeds as a retried one, which is due after its
    fire time."""

    @app.task("fragile", retry=ONCE)
    async def fragile(ctx: dt.Context, number: int) -> int:
        if ctx.fire_time == (await app.get_job(ctx.job_id)).due_at:
            raise ValueError("first time")
        return number

    async with app.running():
        return await (await fragile.submit(number=7, **options)).wait("60s")


async def test_a_dead_letter_runs_again_as_a_new_job(app: dt.App) -> None:
    """I-8."""
    job = await dead_letter(app, queue="slow", priority=3, owner="ann", labels={"a": "b"})
    async with app.running():
        again = await app.retry_job(job.id)
        await again.wait("60s")
        assert (again.state, again.result, again.payload) == ("succeeded", 7, {"number": 7})
        assert (again.fire_time, again.queue, again.priority, again.labels) == (
            job.fire_time,
            "slow",
            3,
            {"a": "b"},
        )
        assert again.record.retry_of == job.id
        await job.refresh()
        assert (job.state, job.record.disposition) == ("dead", "retried")
        for repeat in (app.retry_job, app.discard_job):
            with pytest.raises(dt.JobFinished, match="was already retried"):
                await repeat(job.id)


async def test_a_dead_letter_whose_key_is_taken_stays_open(app: dt.App) -> None:
    """Nothing may be lost in silence: neither the dead letter nor its retry."""
    job = await dead_letter(app, unique_key="only")
    await app.open()
    holder = await app.submit("fragile", number=8, unique_key="only", delay="1h")
    with pytest.raises(dt.Conflict, match=str(holder.id)):
        await app.retry_job(job.id)
    assert (await job.refresh()).record.disposition is None
    await holder.cancel()
    assert (await (await app.retry_job(job.id)).refresh()).record.retry_of == job.id


async def test_a_dead_letter_is_discarded_and_stays_on_record(app: dt.App) -> None:
    job = await dead_letter(app)
    await app.open()
    await app.discard_job(str(job.id))
    await job.refresh()
    assert (job.state, job.record.disposition) == ("dead", "discarded")
    with pytest.raises(dt.JobFinished):
        await app.retry_job(job.id)


async def test_only_dead_letters_can_be_retried_or_discarded(app: dt.App) -> None:
    await app.open()
    job = await app.submit("work", delay="1h")
    for verb in (app.retry_job, app.discard_job):
        with pytest.raises(dt.JobFinished, match="pending"):
            await verb(job.id)
        with pytest.raises(dt.JobNotFound):
            await verb("01935c2e-7b3a-7000-8000-000000000000")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_attempts": 0}, "retry.max_attempts"),
        ({"max_attempts": True}, "retry.max_attempts"),
        ({"max_attempts": 1001}, "retry.max_attempts"),
        ({"multiplier": 0.5}, "retry.multiplier"),
        ({"multiplier": float("nan")}, "retry.multiplier"),
        ({"first_delay": "-1s"}, "retry.first_delay"),
        ({"max_delay": 7}, "retry.max_delay"),
    ],
)
def test_wrong_retries_are_refused(options: dict[str, Any], field: str) -> None:
    with pytest.raises(dt.InvalidInput) as refused:
        dt.Retry(**options)
    assert refused.value.field == field

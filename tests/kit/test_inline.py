"""Inline: `submit` returns after the job has run in the real engine. Recording: no job runs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import duetime as dt
from duetime import testing
from duetime.testing.kit.virtual_clock import Stuck


async def test_submit_returns_a_handle_with_the_result(app: dt.App) -> None:
    @app.task("add")
    async def add(a: int, b: int = 1) -> int:
        await asyncio.sleep(3600)
        return a + b

    @app.task("sync_task")
    def sync_task(ctx: dt.Context) -> list[Any]:
        ctx.sync.checkpoint(1)
        return [ctx.attempt, threading.get_ident()]

    with testing.inline(app):
        job = await add.submit(a=2, delay="3d")
        assert (job.state, job.result, job.attempt) == (dt.State.SUCCEEDED, 3, 1)
        assert "time" not in vars(asyncio.get_running_loop()), "between two submits time is real"
        assert (await sync_task.submit()).result == [1, threading.get_ident()]
        assert (await app.submit("add", a=5, b=5)).result == 10
        jobs = await app.submit_many([dt.NewJob("add", {"a": number}) for number in range(3)])
        assert [job.result for job in jobs] == [1, 2, 3]
        assert await job.wait() is job
    assert not app.is_open


async def test_retries_happen_without_waiting(app: dt.App) -> None:
    attempts: list[int] = []

    @app.task("flaky", retry=dt.Retry(max_attempts=3, first_delay="1h"))
    async def flaky(ctx: dt.Context) -> str:
        attempts.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ConnectionError("not yet")
        return "at last"

    with testing.inline(app):
        job = await flaky.submit()
    assert (job.result, job.failures, attempts) == ("at last", 2, [1, 2, 3])


async def test_failure_is_raised_unchanged_or_recorded(app: dt.App) -> None:
    problem = KeyError("customer")

    @app.task("fails", retry=dt.Retry(max_attempts=2))
    def fails() -> None:
        raise problem

    @app.task("hangs", timeout="1m", retry=dt.Retry(max_attempts=1))
    async def hangs() -> None:
        await asyncio.Event().wait()

    with testing.inline(app):
        with pytest.raises(KeyError) as raised:
            await fails.submit()
        assert raised.value is problem
        with pytest.raises(dt.JobFailed, match="hangs is dead: timed out"):
            await hangs.submit()
    with testing.inline(app, failures="record"):
        job = await fails.submit()
        assert (job.state, job.failures) == (dt.State.DEAD, 2)
        assert "KeyError: 'customer'" in (job.error or "")


async def test_jobs_submitted_by_a_task_run_before_submit_returns(app: dt.App) -> None:
    order: list[str] = []

    @app.task("parent")
    async def parent() -> None:
        job = await child.submit(name="one")
        assert job.state is dt.State.PENDING
        app.sync.submit(child, name="two")
        order.append("parent")

    @app.task("child")
    async def child(name: str) -> None:
        order.append(name)
        if name == "two":
            raise ValueError("child")

    with testing.inline(app):
        with pytest.raises(ValueError, match="child"):
            await parent.submit()
        assert order[:3] == ["parent", "one", "two"]
        testing.assert_submitted(app, child, times=2)


async def test_task_can_wait_for_a_job_it_submitted(app: dt.App) -> None:
    @app.task("child")
    async def child() -> int:
        return 7

    @app.task("parent")
    async def parent() -> Any:
        return (await (await child.submit()).wait()).result + 1

    with testing.inline(app):
        assert (await parent.submit()).result == 8


async def test_concurrent_submits_all_run(app: dt.App) -> None:
    @app.task("echo")
    async def echo(value: int) -> int:
        await asyncio.sleep(10 - value)
        return value

    with testing.inline(app):
        jobs = await asyncio.gather(*(echo.submit(value=value) for value in range(10)))
        assert [job.result for job in jobs] == list(range(10))


async def test_triggered_and_retried_jobs_run_but_schedules_do_not_fire(app: dt.App) -> None:
    runs: list[str | None] = []

    @app.task("report", retry=dt.Retry(max_attempts=1))
    async def report(ctx: dt.Context, good: bool = False) -> None:
        runs.append(ctx.schedule)
        if not good:
            raise ValueError("bad")

    with testing.inline(app, failures="record"):
        await app.schedule("hourly", report, dt.Every("1s"), payload={"good": True})
        assert (await app.trigger("hourly")).state is dt.State.SUCCEEDED
        dead = await report.submit()
        again = await dead.retry({"good": True})
        assert (dead.state, again.state) == (dt.State.DEAD, dt.State.SUCCEEDED)
    assert runs == ["hourly", None, None]


async def test_job_of_an_unknown_task_stays_pending(app: dt.App) -> None:
    with testing.inline(app):
        job = await app.submit("task.of.another.service", x=1)
        assert job.state is dt.State.PENDING
        with pytest.raises(Stuck, match="will stay pending"):
            await job.wait()


def test_sync_submit_runs_the_job_on_the_thread_of_the_test(app: dt.App) -> None:
    """So the task can use a connection that is bound to the thread of the test."""

    @app.task("where")
    def where() -> int:
        return threading.get_ident()

    with testing.inline(app):
        job = app.sync.submit(where)
        assert (job.state, job.result) == (dt.State.SUCCEEDED, threading.get_ident())
        assert [one.result for one in app.sync.submit_many([dt.NewJob("where")])] == [threading.get_ident()]
        assert app.sync.submit("where", connection=object()).result == threading.get_ident()


async def test_middleware_and_hooks_run_around_inline_jobs(app: dt.App) -> None:
    calls: list[str] = []

    @app.middleware
    async def around(ctx: dt.Context, call_next: Any) -> Any:
        calls.append("before")
        try:
            return await call_next()
        finally:
            calls.append("after")

    @app.task("note")
    async def note() -> None:
        calls.append("run")

    with testing.inline(app):
        await note.submit()
    assert calls == ["before", "run", "after"]


async def test_recording_stores_jobs_without_running_them(app: dt.App) -> None:
    @app.task("never")
    async def never() -> None:
        raise AssertionError("it ran")

    with testing.recording(app):
        job = await never.submit()
        app.sync.submit(never)
        assert (await job.refresh()).state is dt.State.PENDING
        testing.assert_submitted(app, never, times=2)
        with pytest.raises(Stuck, match="recording"):
            await job.wait()
        async with app.running():
            pass
        assert (await job.refresh()).state is dt.State.PENDING


def test_unknown_failures_value_is_refused(app: dt.App) -> None:
    with pytest.raises(dt.InvalidInput, match="failures"), testing.inline(app, failures="ignore"):  # type: ignore[arg-type]
        pass

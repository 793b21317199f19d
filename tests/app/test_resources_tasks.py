"""Resources, middleware and hooks on an app that runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import duetime as dt


async def test_a_resource_lives_as_long_as_the_node(memory_app: dt.App) -> None:
    events: list[str] = []

    @memory_app.resource
    async def database() -> AsyncIterator[str]:
        events.append("opened")
        yield "database"
        events.append("closed")

    @memory_app.task("work")
    async def work(n: int, db: Annotated[str, dt.Use(database)] = dt.INJECTED) -> str:
        return f"{db} {n}"

    @memory_app.task("plain")
    def plain(db: Annotated[str, dt.Use(database)] = dt.INJECTED) -> str:
        return db

    for _ in range(2):
        async with memory_app.running():
            jobs = [await work.submit(n=n) for n in range(3)] + [await plain.submit()]
            for job in jobs:
                await job.wait("60s")
            assert [job.result for job in jobs] == ["database 0", "database 1", "database 2", "database"]
            assert events[-1] == "opened"
    assert events == ["opened", "closed"] * 2


async def test_middleware_and_hooks_surround_every_attempt(memory_app: dt.App) -> None:
    events: list[Any] = []

    @memory_app.middleware
    async def timing(ctx: dt.Context, call_next: Any) -> Any:
        events.append("in")
        try:
            return await call_next()
        finally:
            events.append("out")

    @memory_app.before_attempt
    def before(ctx: dt.Context) -> None:
        events.append(f"attempt {ctx.attempt}")

    @memory_app.after_attempt
    async def after(ctx: dt.Context, result: Any) -> None:
        events.append(result)

    @memory_app.on_failure
    def failed(ctx: dt.Context, error: Exception) -> None:
        events.append(repr(error))

    @memory_app.task("work", retry=dt.Retry(max_attempts=2, first_delay="1ms"))
    async def work(ctx: dt.Context) -> str:
        if ctx.attempt == 1:
            raise ValueError("once")
        return "well"

    async with memory_app.running():
        job = await work.submit()
        await job.wait("60s")
    assert job.result == "well"
    assert events == ["in", "attempt 1", "ValueError('once')", "out", "in", "attempt 2", "well", "out"]


async def test_on_failure_hears_of_timeouts_and_of_an_exit_but_not_of_a_cancellation(
    memory_app: dt.App,
) -> None:
    heard: list[BaseException] = []
    started = asyncio.Event()
    once = dt.Retry(max_attempts=1)

    @memory_app.on_failure
    async def report(ctx: dt.Context, error: BaseException) -> None:
        heard.append(error)

    @memory_app.task("slow", timeout="50ms", retry=once)
    async def slow() -> None:
        await asyncio.Event().wait()

    @memory_app.task("leave", retry=once)
    async def leave() -> None:
        raise SystemExit(3)

    @memory_app.task("endless")
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    async with memory_app.running():
        for task in (slow, leave):
            await (await task.submit()).wait("60s")
        job = await endless.submit()
        await started.wait()
        await job.cancel()
        await job.wait("60s")
    assert [type(error) for error in heard] == [TimeoutError, SystemExit]

"""A store with history: jobs that a worker has run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import duetime as dt
from duetime.model.job import State


@dataclass(frozen=True, slots=True)
class Past:
    url: str
    succeeded: str
    dead: list[str]


def make_past(url: str) -> Past:
    app = dt.App(url)

    @app.task("hello")
    async def hello(name: str) -> dict[str, str]:
        return {"hello": name}

    @app.task("boom", retry=dt.Retry(max_attempts=1))
    async def boom(ctx: dt.Context) -> None:
        await ctx.checkpoint({"page": 3})
        await ctx.progress(3, 10, "pages")
        raise ValueError("bad \x1b[31mluck")

    async def live() -> Past:
        async with app.running(roles=("worker",)):
            good = await hello.submit(name="w\u00f6rld", owner="anna", labels={"team": "blue"})
            bad = await app.submit_many([dt.NewJob("boom") for _ in range(3)])
            for job in (good, *bad):
                await job.wait("60s")
        assert good.state is State.SUCCEEDED
        return Past(url, str(good.id), [str(job.id) for job in bad])

    return asyncio.run(live())

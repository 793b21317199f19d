"""The tasks of the test service."""

from __future__ import annotations

import asyncio
from typing import Any

import duetime as dt

app = dt.App("memory://")  # the command line sets another store


@app.task("greet", queue="people")
async def greet(ctx: dt.Context, name: str = "world") -> dict[str, Any]:
    """Succeeds immediately."""
    return {"hello": name}


@app.task("careful", queue="vault", priority=8, timeout="5m", delivery="at_most_once")
async def careful(ctx: dt.Context, amount: int, currency: str = "EUR") -> dict[str, Any]:
    """Moves money."""
    return {"moved": amount}


@app.task("remember", retry=dt.Retry(max_attempts=1))
async def remember(ctx: dt.Context, text: str) -> dict[str, str]:
    """Saves the text as checkpoint, progress and result."""
    await ctx.progress(1, 2, text)
    await ctx.checkpoint({"text": text})
    return {text: text}


@app.task("endless")
async def endless(ctx: dt.Context) -> None:
    """Runs until it is cancelled."""
    ctx.log.warning("counts pages")
    await ctx.progress(3, 10, "pages")
    await asyncio.Event().wait()


@app.task("failing", retry=dt.Retry(max_attempts=1))
async def failing(ctx: dt.Context, text: str) -> None:
    """Fails with the given text."""
    raise ValueError(text)


@app.task("fragile", retry=dt.Retry(max_attempts=1))
async def fragile(ctx: dt.Context, number: int = 0) -> int:
    """Fails if the number is negative."""
    if number < 0:
        raise ValueError("the number is negative")
    return number

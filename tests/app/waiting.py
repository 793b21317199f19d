"""Waiting for a condition with a deadline, instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

DEADLINE = 60.0
LOOK_EVERY = 0.01


async def eventually(condition: Callable[[], Awaitable[bool]], within: float = DEADLINE) -> None:
    """Until the condition holds; fails when it does not within so many seconds."""
    end = time.monotonic() + within
    while not await condition():
        assert time.monotonic() < end, f"did not become true within {within} s: {condition}"
        await asyncio.sleep(LOOK_EVERY)


async def soon(event: asyncio.Event, within: float = DEADLINE) -> None:
    """Until a task has set the event."""
    async with asyncio.timeout(within):
        await event.wait()

"""Answers kept for a moment, so that many who look cost the store as little as one; what is dear is kept for longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from duetime.clock import Clock
from duetime.model.instant import Micros

SHARE = 20  # an answer is kept for at least so many times the time it took
MOST_KEPT = 200


class Fresh:
    """Who asks while the answer is being made waits for the same one. A failure is told to all who wait, and not kept."""

    def __init__(self, clock: Clock, keep: Micros) -> None:
        self._clock = clock
        self._keep = keep
        self._made: dict[Hashable, tuple[asyncio.Task[Any], Micros]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> Any:
        known = self._made.get(key)
        if known is not None and (not known[0].done() or self._clock.monotonic() < known[1]):
            return await asyncio.shield(known[0])
        while len(self._made) >= MOST_KEPT:
            del self._made[next(iter(self._made))]
        task = asyncio.create_task(self._make(key, make))
        self._made[key] = (task, 0)
        return await asyncio.shield(task)

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> Any:
        began = self._clock.monotonic()
        answer = await make()
        now = self._clock.monotonic()
        if key in self._made:
            self._made[key] = (self._made[key][0], now + max(self._keep, SHARE * (now - began)))
        return answer

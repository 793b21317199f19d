"""A cache with a time to live: many readers cost the store as little as one. Expensive answers are kept
longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from duetime.clock import Clock
from duetime.model.instant import Micros

COST_FACTOR = 20  # an answer is kept for at least this many times the time it took
MAX_KEPT = 200


class TtlCache:
    """Callers that ask while an answer is being made wait for the same one. A failure is raised to all of
    them, and not kept."""

    def __init__(self, clock: Clock, ttl: Micros) -> None:
        self._clock = clock
        self._ttl = ttl
        self._made: dict[Hashable, tuple[asyncio.Task[Any], Micros]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> Any:
        known = self._made.get(key)
        if known is not None and (not known[0].done() or self._clock.monotonic() < known[1]):
            return await asyncio.shield(known[0])
        while len(self._made) >= MAX_KEPT:
            del self._made[next(iter(self._made))]
        task = asyncio.create_task(self._make(key, make))
        self._made[key] = (task, 0)
        return await asyncio.shield(task)

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> Any:
        began = self._clock.monotonic()
        answer = await make()
        now = self._clock.monotonic()
        if key in self._made:
            self._made[key] = (self._made[key][0], now + max(self._ttl, COST_FACTOR * (now - began)))
        return answer

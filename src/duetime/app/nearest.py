"""The jobs that come first. Stores list the newest first, so the time in which to look is narrowed until few are left."""

from __future__ import annotations

from collections.abc import Callable

from duetime.clock import Clock
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Job, JobFilter
from duetime.store import Store

FEW = 200
PATIENCE = SECOND * 3 // 10  # then what was found so far has to do
CLOSE = SECOND // 1_000

Wanted = Callable[[Micros], JobFilter]  # those before an instant
Key = Callable[[Job], Micros]


async def nearest(store: Store, clock: Clock, wanted: Wanted, key: Key, between: tuple[Micros, Micros], limit: int) -> list[Job]:
    """The earliest by `key` of those in this time. Exact unless thousands share an instant, or the store is slow."""
    before = await _narrow(store, clock, wanted, between, limit)
    return sorted(await store.list_jobs(wanted(before), FEW), key=key)[:limit]


async def _narrow(store: Store, clock: Clock, wanted: Wanted, between: tuple[Micros, Micros], limit: int) -> Micros:
    """An instant before which there are enough of them, and few."""
    low, high = between
    deadline = clock.monotonic() + PATIENCE
    if await store.count_matching(wanted(high), FEW + 1) <= FEW:
        return high
    while high - low > CLOSE and clock.monotonic() < deadline:
        middle = (low + high) // 2
        found = await store.count_matching(wanted(middle), FEW + 1)
        if limit <= found <= FEW:
            return middle
        low, high = (low, middle) if found > FEW else (middle, high)
    return high

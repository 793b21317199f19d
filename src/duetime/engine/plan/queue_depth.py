"""Queue depth over time: the leader counts the jobs of the queues once a minute, and keeps the counts for a
day."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from duetime.clock import Clock
from duetime.engine.node.registry import ALL_TENANTS
from duetime.errors import StoreError
from duetime.model.codec import encode
from duetime.model.instant import MINUTE, Micros, minute_key
from duetime.model.limit import largest
from duetime.store import Store

KIND = "depth"  # of records: of a minute, the counts by queue
KEEP = 25 * 60 * MINUTE
COST_FACTOR = 500  # counting takes at most a 500th of the time
MAX_INTERVAL = 10 * MINUTE  # also where counting is slow


class DepthSampler:
    """Writes nothing while there are no jobs: a sample without any holds until the next one. A sample that
    fails is left out, because repeating a slow count would cost more than a gap in a chart."""

    name = "depth"

    def __init__(self, store: Store, clock: Clock, leads: Callable[[], bool]) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._empty = False  # the last sample

    async def run_once(self) -> Micros:
        if not self._leads():
            self._empty = False  # another leader may write others
            return MINUTE
        began = self._clock.monotonic()
        with suppress(StoreError):
            await self._sample()
        took = self._clock.monotonic() - began
        return min(max(MINUTE, COST_FACTOR * took), MAX_INTERVAL)

    async def _sample(self) -> None:
        counts = largest(await self._store.queues(counted=True))
        if counts or not self._empty:
            now = self._clock.now()
            key = minute_key(now // MINUTE)
            await self._store.put_record(KIND, ALL_TENANTS, key, encode(counts), expires_at=now + KEEP)
        self._empty = not counts

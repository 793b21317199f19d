"""The state of the fleet for /metrics, cached for all scrapers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from duetime.app import App
from duetime.app.alerts import open_alerts
from duetime.app.queue_lag import queue_lags
from duetime.app.stats import TtlCache
from duetime.errors import DuetimeError
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Lease, Node
from duetime.model.limit import Queue
from duetime.model.views import ReadStoreView

CACHE_TIME = 5 * SECOND
STORE_TIMEOUT = 5.0  # seconds, when nothing is cached; a scrape waits 10 by default
CACHED_TIMEOUT = 0.05  # seconds, when an older state can be shown
MAX_AGE = 60 * SECOND


@dataclass(frozen=True, slots=True)
class FleetState:
    queues: list[Queue]
    nodes: list[Node]
    leases: list[Lease]
    now: Micros
    lags: Mapping[str, Micros]  # by queue
    read_store: ReadStoreView | None  # of the read replica, if there is one
    alerts: Counter[tuple[str, str]]  # open ones, by condition and severity


class FleetGauges:
    """Reads the store every few seconds, however many scrape, and falls back to the last state if the store
    is slow."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._cache = TtlCache(app.clock, CACHE_TIME)
        self._last: FleetState | None = None

    async def read(self) -> FleetState | None:
        known = self._last is not None and self._app.clock.now() - self._last.now < MAX_AGE
        try:
            async with asyncio.timeout(CACHED_TIMEOUT if known else STORE_TIMEOUT):
                self._last = await self._cache.get("fleet", self._read_store)
        except TimeoutError:
            return self._last if known else None
        except DuetimeError:
            return None
        return self._last

    async def _read_store(self) -> FleetState:
        reads, shared = self._app.context.reads, self._app.context.shared
        now = await self._app.now()
        return FleetState(
            await reads.queues(counted=True),
            await reads.nodes(),
            await shared.leases.read_if_available(),
            now,
            await queue_lags(reads, now),
            await shared.read_state(),
            await open_alerts(reads),
        )

"""How the fleet stands, as the store says: asked seldom, for all who scrape."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from duetime.app import App
from duetime.app.fresh import Fresh
from duetime.errors import DuetimeError
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Lease, Node
from duetime.store import QueueCount

KEEP = 5 * SECOND
PATIENCE = 1.0  # seconds to wait for the store, when nothing is known of it
SHORT_PATIENCE = 0.05  # when something is: it may be a little old then
KNOWN_FOR = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Fleet:
    """What the store said, and when."""

    queues: list[QueueCount]
    nodes: list[Node]
    leases: list[Lease]
    now: Micros


class Scrapes:
    """The store is asked once in a few seconds, however many scrape; and nobody waits for it who can do without."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._fresh = Fresh(app.clock, KEEP)
        self._last: Fleet | None = None

    async def fleet(self) -> Fleet | None:
        known = self._last is not None and self._app.clock.now() - self._last.now < KNOWN_FOR
        try:
            async with asyncio.timeout(SHORT_PATIENCE if known else PATIENCE):
                self._last = await self._fresh.get("fleet", self._ask)
        except TimeoutError:
            return self._last if known else None
        except DuetimeError:
            return None
        return self._last

    async def _ask(self) -> Fleet:
        store = self._app.store
        return Fleet(await store.count_jobs(), await store.nodes(), await store.leases(), await self._app.now())

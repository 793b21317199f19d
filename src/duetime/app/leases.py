"""The leases as this process sees them: in the store, or in the service that holds them instead."""

from __future__ import annotations

import asyncio

from duetime.app.stats import TtlCache
from duetime.clock import Clock
from duetime.engine.plan.leases import read_leases
from duetime.errors import LeasesUnavailable
from duetime.lease import LeaseTable
from duetime.model.instant import SECOND
from duetime.model.lease import Lease
from duetime.store import Store

NO_LEASES = (
    "etcd does not answer: until it does, each planner plans what no other has planned in time, and nothing "
    "is pruned"
)
CACHE_TIME = SECOND
ANSWER_TIMEOUT = 2.0  # seconds: the reader of a page must not wait for etcd


class LeaseReader:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.table: LeaseTable | None = None  # None: the store holds the leases
        self._cache = TtlCache(clock, CACHE_TIME)

    async def read(self) -> list[Lease]:
        if self.table is None:
            return await read_leases(self._store)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                leases: list[Lease] = await self._cache.get("leases", self._read_table)
                return leases
        except (LeasesUnavailable, TimeoutError) as problem:
            raise LeasesUnavailable(NO_LEASES) from problem

    async def read_if_available(self) -> list[Lease]:
        try:
            return await self.read()
        except LeasesUnavailable:
            return []

    async def close(self) -> None:
        self._cache = TtlCache(self._clock, CACHE_TIME)
        if self.table is not None:
            await self.table.close()

    async def _read_table(self) -> list[Lease]:
        assert self.table is not None
        return await self.table.leases(self._clock.now())

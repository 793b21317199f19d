"""Results of the fleet by the minute: the roll-ups of all processes, merged. Completed minutes are read
once."""

from __future__ import annotations

import asyncio

from duetime.observers.counters import AttemptCounts
from duetime.observers.rollups import KIND, from_bytes, key_of, minute_of
from duetime.observers.telemetry import ProcessTelemetry
from duetime.store import Store

PAGE = 500
COMPLETE_AFTER = 5  # minutes; until then a process may still add to one
MAX_TENANTS = 32


class TenantHistory:
    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._complete: dict[int, AttemptCounts] = {}
        self._first = self._end = 0  # the range of minutes that `_complete` holds
        self._lock = asyncio.Lock()

    async def read(self, first: int, last: int, own: ProcessTelemetry | None) -> dict[int, AttemptCounts]:
        """The minutes from first to last that have counts. This process's own counts are current."""
        async with self._lock:
            return await self._read(first, last, own)

    async def _read(self, first: int, last: int, own: ProcessTelemetry | None) -> dict[int, AttemptCounts]:
        if not self._first <= first <= self._end:
            self._complete, self._first, self._end = {}, first, first
        recent = await self._load(max(first, self._end), own)
        complete_until = last - COMPLETE_AFTER
        self._complete.update((minute, cell) for minute, cell in recent.items() if minute < complete_until)
        self._complete = {minute: cell for minute, cell in self._complete.items() if minute >= first}
        self._first, self._end = first, max(self._end, complete_until)
        return {
            minute: cell for minute, cell in {**self._complete, **recent}.items() if first <= minute <= last
        }

    async def _load(self, first: int, own: ProcessTelemetry | None) -> dict[int, AttemptCounts]:
        found: dict[int, AttemptCounts] = {}
        here = {} if own is None else own.counters.minutes_of(self._tenant)
        after = (self._tenant, key_of(first))
        while page := await self._store.list_records(KIND, self._tenant, PAGE, after):
            for record in page:
                minute = minute_of(record.key)
                if own is None or minute not in here or not record.key.endswith(own.instance):
                    found.setdefault(minute, AttemptCounts()).merge(from_bytes(record.value))
            after = (self._tenant, page[-1].key)
            if len(page) < PAGE:
                break
        for minute, cell in here.items():
            if minute >= first:
                found.setdefault(minute, AttemptCounts()).merge(cell)
        return found


class StatsHistory:
    """The histories of tenants that were read recently."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tenants: dict[str, TenantHistory] = {}

    def of(self, tenant: str) -> TenantHistory:
        known = self._tenants.pop(tenant, None) or TenantHistory(self._store, tenant)
        self._tenants[tenant] = known
        if len(self._tenants) > MAX_TENANTS:
            del self._tenants[next(iter(self._tenants))]
        return known

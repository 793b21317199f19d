"""What the fleet did, minute by minute: the roll-ups of all processes, merged. Minutes that are over are read once."""

from __future__ import annotations

import asyncio

from duetime.observers.minutes import KIND, from_bytes, key_of, minute_of
from duetime.observers.tally import Cell
from duetime.observers.watch import Watch
from duetime.store import Store

PAGE = 500
SETTLED_AFTER = 5  # minutes: until then a process may still add to one
MOST_TENANTS = 32


class TenantHistory:
    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._settled: dict[int, Cell] = {}
        self._first = self._end = 0  # the minutes which `settled` is complete for
        self._one_at_a_time = asyncio.Lock()

    async def read(self, first: int, last: int, own: Watch | None) -> dict[int, Cell]:
        """The minutes from first to last in which there was anything. This process's own counts are taken as they are at this moment."""
        async with self._one_at_a_time:
            return await self._read(first, last, own)

    async def _read(self, first: int, last: int, own: Watch | None) -> dict[int, Cell]:
        if not self._first <= first <= self._end:
            self._settled, self._first, self._end = {}, first, first
        recent = await self._load(max(first, self._end), own)
        settled_until = last - SETTLED_AFTER
        self._settled.update((minute, cell) for minute, cell in recent.items() if minute < settled_until)
        self._settled = {minute: cell for minute, cell in self._settled.items() if minute >= first}
        self._first, self._end = first, max(self._end, settled_until)
        return {minute: cell for minute, cell in {**self._settled, **recent}.items() if first <= minute <= last}

    async def _load(self, first: int, own: Watch | None) -> dict[int, Cell]:
        found: dict[int, Cell] = {}
        here = {} if own is None else own.tally.minutes_of(self._tenant)
        after = (self._tenant, key_of(first))
        while page := await self._store.list_records(KIND, self._tenant, PAGE, after):
            for record in page:
                minute = minute_of(record.key)
                if own is None or minute not in here or not record.key.endswith(own.instance):
                    found.setdefault(minute, Cell()).merge(from_bytes(record.value))
            after = (self._tenant, page[-1].key)
            if len(page) < PAGE:
                break
        for minute, cell in here.items():
            if minute >= first:
                found.setdefault(minute, Cell()).merge(cell)
        return found


class History:
    """Of every tenant that was asked for lately."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tenants: dict[str, TenantHistory] = {}

    def of(self, tenant: str) -> TenantHistory:
        known = self._tenants.pop(tenant, None) or TenantHistory(self._store, tenant)
        self._tenants[tenant] = known
        if len(self._tenants) > MOST_TENANTS:
            del self._tenants[next(iter(self._tenants))]
        return known

"""Lists of jobs, in turns: however many a tenant asks for at the same time, the list of another tenant waits
for one of them at most."""

from __future__ import annotations

from asyncio import Lock
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

from duetime.model.job import Job, JobFilter
from duetime.store import Store


class Turns:
    """Of each tenant one list and one search at a time, in the order in which they came."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, bool], Lock] = WeakValueDictionary()

    def of(self, wanted: JobFilter) -> Lock:
        return self._locks.setdefault((wanted.tenant, wanted.is_search), Lock())


class FairLists:
    """A store whose jobs are listed and counted in turns. All other verbs go straight to the store."""

    def __init__(self, store: Store, turns: Turns) -> None:
        self._store = store
        self._turns = turns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list_jobs(self, wanted: JobFilter, limit: int, before: UUID | None = None) -> list[Job]:
        async with self._turns.of(wanted):
            return await self._store.list_jobs(wanted, limit, before)

    async def count_jobs(self, wanted: JobFilter, limit: int) -> int:
        async with self._turns.of(wanted):
            return await self._store.count_jobs(wanted, limit)

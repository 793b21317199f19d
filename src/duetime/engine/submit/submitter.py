"""Group commit: concurrent submissions share one write."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from uuid import UUID

from duetime.model.job import JobDraft
from duetime.store import Store

MAX_GROUP_JOBS = 5_000

Entry = tuple[Sequence[JobDraft], asyncio.Future[list[UUID]]]


class Submitter:
    """One write at a time. Jobs that arrive during a write are stored together by the next one. A single
    caller never waits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[Entry] = []
        self._writing = False
        self._flushing: asyncio.Task[None] | None = None

    async def submit(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        """Store all of `drafts` or none. One id for each."""
        if self._writing:
            result: asyncio.Future[list[UUID]] = asyncio.get_running_loop().create_future()
            self._waiting.append((drafts, result))
            return await result
        self._writing = True
        try:
            return await self._store.add_jobs(drafts)
        finally:
            self._next_group()

    def _next_group(self) -> None:
        self._writing = bool(self._waiting)
        if self._waiting:
            self._flushing = asyncio.get_running_loop().create_task(self._flush(self._take_group()))

    def _take_group(self) -> list[Entry]:
        size = count = 0
        while count < len(self._waiting) and (
            count == 0 or size + len(self._waiting[count][0]) <= MAX_GROUP_JOBS
        ):
            size += len(self._waiting[count][0])
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _flush(self, group: list[Entry]) -> None:
        try:
            stored = iter(await self._store.add_jobs([draft for drafts, _ in group for draft in drafts]))
        except Exception as problem:
            for _, result in group:
                if not result.done():
                    result.set_exception(problem)
        else:
            for drafts, result in group:
                ids = list(islice(stored, len(drafts)))
                if not result.done():
                    result.set_result(ids)
        finally:
            # Let the callers just served run first: if they submit again immediately, they join the next
            # group.
            asyncio.get_running_loop().call_soon(self._next_group)

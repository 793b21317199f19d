"""Group commit: what many callers submit at the same time is written together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from uuid import UUID

from duetime.model.job import JobDraft
from duetime.store import Store

MOST_IN_A_GROUP = 5_000

Entry = tuple[Sequence[JobDraft], asyncio.Future[list[UUID]]]


class Submitter:
    """Group commit: one write is under way at a time, and what arrives meanwhile goes together in the next. A lone caller never waits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[Entry] = []
        self._writing = False
        self._flushing: asyncio.Task[None] | None = None

    async def submit(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        """All of `drafts` or none; one id for each."""
        if self._writing:
            place: asyncio.Future[list[UUID]] = asyncio.get_running_loop().create_future()
            self._waiting.append((drafts, place))
            return await place
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
        while count < len(self._waiting) and (count == 0 or size + len(self._waiting[count][0]) <= MOST_IN_A_GROUP):
            size += len(self._waiting[count][0])
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _flush(self, group: list[Entry]) -> None:
        try:
            stored = iter(await self._store.add_jobs([draft for drafts, _ in group for draft in drafts]))
        except Exception as problem:
            for _, place in group:
                if not place.done():
                    place.set_exception(problem)
        else:
            for drafts, place in group:
                answer = list(islice(stored, len(drafts)))
                if not place.done():
                    place.set_result(answer)
        finally:
            # Those just served come first: whoever submits again at once joins the next group instead of writing alone.
            asyncio.get_running_loop().call_soon(self._next_group)

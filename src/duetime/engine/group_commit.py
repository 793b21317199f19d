"""Group commit: concurrent writes of the same kind share one transaction of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")
MAX_GROUP = 5_000  # items


class GroupCommit(Generic[Item, Answer]):
    """One write at a time. Items that arrive during a write are written together by the next one. A single
    caller never waits."""

    def __init__(self, write: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]) -> None:
        self._write = write
        self._waiting: list[tuple[Sequence[Item], asyncio.Future[list[Answer]]]] = []
        self._writing = False
        self._flushing: asyncio.Task[None] | None = None

    async def write(self, items: Sequence[Item]) -> list[Answer]:
        """Write all items or none. One answer for each."""
        if self._writing:
            result: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
            self._waiting.append((items, result))
            return await result
        self._writing = True
        try:
            return list(await self._write(items))
        finally:
            self._next_group()

    def _next_group(self) -> None:
        self._writing = bool(self._waiting)
        if self._waiting:
            self._flushing = asyncio.get_running_loop().create_task(self._flush(self._take_group()))

    def _take_group(self) -> list[tuple[Sequence[Item], asyncio.Future[list[Answer]]]]:
        size = count = 0
        while count < len(self._waiting) and (count == 0 or size + len(self._waiting[count][0]) <= MAX_GROUP):
            size += len(self._waiting[count][0])
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _flush(self, group: list[tuple[Sequence[Item], asyncio.Future[list[Answer]]]]) -> None:
        try:
            written = iter(await self._write([item for items, _ in group for item in items]))
        except Exception as problem:
            for _, result in group:
                if not result.done():
                    result.set_exception(problem)
        else:
            for items, result in group:
                answers = list(islice(written, len(items)))
                if not result.done():
                    result.set_result(answers)
        finally:
            # Let the callers just served run first: if they write again immediately, they join the next
            # group.
            asyncio.get_running_loop().call_soon(self._next_group)

"""Queues: every name a job was ever stored under, and what an operator says about it."""

from __future__ import annotations

from duetime.model.limit import Queue
from duetime.stores.postgres.bell import LOOK_AT_ALL, Bell
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.postgres.rows import queue_of


class Queues:
    def __init__(self, lines: Lines, bell: Bell) -> None:
        self._lines = lines
        self._bell = bell
        self._known: set[str] = set()

    async def record(self, names: set[str]) -> None:
        if new := names - self._known:
            await self._lines.submit.count(SQL["add_queues"], sorted(new))
            self._known |= new

    async def all(self) -> list[Queue]:
        return [queue_of(row) for row in await self._lines.read.fetch(SQL["queues"])]

    async def set(self, queue: Queue) -> None:
        count, period = (None, None) if queue.rate is None else queue.rate
        said = (queue.name, queue.paused, queue.pause_note, queue.paused_at, queue.most, count, period)
        await self._lines.submit.count(SQL["set_queue"], *said)
        self._bell.ring([LOOK_AT_ALL])

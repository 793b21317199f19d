"""Queues: every name a job was ever stored under, and its settings."""

from __future__ import annotations

from duetime.model.limit import Queue
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.notifier import LOOK_AT_ALL, Notifier
from duetime.stores.postgres.rows import queue_of


class PostgresQueues:
    def __init__(self, connections: PostgresConnections, notifier: Notifier) -> None:
        self._connections = connections
        self._notifier = notifier
        self._known: set[str] = set()

    async def record(self, names: set[str]) -> None:
        if new := names - self._known:
            await self._connections.submit.count(SQL["add_queues"], sorted(new))
            self._known |= new

    async def all(self, counted: bool) -> list[Queue]:
        return [queue_of(row) for row in await self._connections.read.fetch(SQL["queues"], counted)]

    async def set(self, queue: Queue) -> None:
        rate = (None, None) if queue.rate is None else queue.rate
        values = (queue.name, queue.paused, queue.pause_note, queue.paused_at, queue.max_running, *rate)
        await self._connections.submit.count(SQL["set_queue"], *values)
        self._notifier.notify([LOOK_AT_ALL])

"""Queues: every name a job was ever stored under, and its settings."""

from __future__ import annotations

from collections.abc import Iterable

from duetime.model.job import JobDraft
from duetime.model.limit import ALL_QUEUES, Queue, QueueFilter, with_lanes
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.notifier import LOOK_AT_ALL, Notifier
from duetime.stores.postgres.rows import queue_of


class PostgresQueues:
    def __init__(self, connections: PostgresConnections, notifier: Notifier) -> None:
        self._connections = connections
        self._notifier = notifier
        self._known: set[tuple[str, str]] = set()

    async def record(self, drafts: Iterable[JobDraft]) -> None:
        if new := {(draft.queue, draft.tenant) for draft in drafts} - self._known:
            await self._connections.submit.count(SQL["add_queues"], *zip(*sorted(new), strict=True))
            self._known |= new

    async def known(self, counted: bool = False, wanted: QueueFilter = ALL_QUEUES) -> list[Queue]:
        if wanted.for_workers:
            return await self._for_workers(wanted)
        rows = await self._connections.read.fetch(SQL["queues"], counted, *wanted[:-1])
        return [queue_of(row) for row in rows]

    async def _for_workers(self, wanted: QueueFilter) -> list[Queue]:
        lanes = await self._connections.read.fetch(SQL["lanes"], wanted.after, wanted.limit)
        return with_lanes(await self.known(False, QueueFilter(restricted=True)), lanes)

    async def set(self, queue: Queue) -> None:
        rate = (None, None) if queue.rate is None else queue.rate
        values = (queue.name, queue.paused, queue.pause_note, queue.paused_at, queue.max_running, *rate)
        await self._connections.submit.count(SQL["set_queue"], *values)
        self._notifier.notify([LOOK_AT_ALL])

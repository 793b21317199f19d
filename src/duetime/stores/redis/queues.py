"""Queues: their settings, and what is in them."""

from __future__ import annotations

from dataclasses import replace
from operator import add
from struct import Struct

from duetime.model import codec
from duetime.model.limit import ALL_QUEUES, Queue, QueueCounts, QueueFilter, Rate, with_lanes
from duetime.stores.hint_text import encode
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.notifier import ALL_LANES
from duetime.stores.redis.rows import lane_of, pairs

_RESTRICTED = Struct(">BIIQ")  # paused, max_running, count and period of the rate; 0: none


class RedisQueues:
    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def known(self, counted: bool = False, wanted: QueueFilter = ALL_QUEUES) -> list[Queue]:
        if wanted.for_workers:
            return await self._for_workers(wanted)
        used, settings, counts = await self._connection.run("queues", int(counted))
        pairs_used = [tuple(name.decode().split("\0")) for name in used]
        queues = {queue: Queue(queue) for queue, _ in pairs_used}
        queues |= {name.decode(): settings_of(name.decode(), row) for name, row in pairs(settings)}
        of_tenant = {queue for queue, tenant in pairs_used if tenant == wanted.tenant}
        found = [
            queue
            for name, queue in sorted(queues.items())
            if name > wanted.after
            and wanted.name in (None, name)
            and (wanted.tenant is None or name in of_tenant)
            and (queue.restricted or not wanted.restricted)
        ][: wanted.limit]
        if not counted:
            return found
        by_queue = _sum(counts, wanted.tenant)
        return [replace(queue, counts=by_queue.get(queue.name, QueueCounts())) for queue in found]

    async def _for_workers(self, wanted: QueueFilter) -> list[Queue]:
        limit = "" if wanted.limit is None else wanted.limit
        names, restricted = await self._connection.run("lanes", wanted.after, limit)
        lanes = [(lane.queue, lane.priority, lane.tenant) for lane in map(lane_of, names)]
        return with_lanes([settings_of(name.decode(), row) for name, row in pairs(restricted)], lanes)

    async def set(self, queue: Queue) -> None:
        settings, restricted = queue_rows(queue)
        await self._connection.run("set_queue", queue.name, settings, restricted, encode(ALL_LANES))


def queue_rows(queue: Queue) -> tuple[bytes, bytes]:
    """Its settings, and its row among the restricted queues or nothing."""
    count, period = queue.rate or (0, 0)
    settings = codec.pack((queue.paused, queue.pause_note, queue.paused_at, queue.max_running, count, period))
    row = _RESTRICTED.pack(queue.paused, queue.max_running or 0, count, period)
    return settings, row if queue.restricted else b""


def settings_of(name: str, row: bytes) -> Queue:
    paused, note, paused_at, max_running, count, period = codec.unpack(row)
    return Queue(name, paused, note, paused_at, max_running, Rate(count, period) if count else None)


def restricted_of(name: str, row: bytes) -> Queue:
    """Without the note."""
    paused, max_running, count, period = _RESTRICTED.unpack(row)
    return Queue(name, bool(paused), None, None, max_running or None, Rate(count, period) if count else None)


def _sum(counts: list[list[bytes]], tenant: str | None) -> dict[str, QueueCounts]:
    found: dict[str, QueueCounts] = {}
    for name, *numbers in counts:
        lane = lane_of(name)
        if tenant in (None, lane.tenant):
            known = found.get(lane.queue, QueueCounts())
            found[lane.queue] = QueueCounts(*map(add, known, map(int, numbers)))
    return found

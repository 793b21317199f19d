"""Everything in the store as rows, for a copy. Nothing else uses the store at that time: a range is replaced
in several calls, and a copy that ends between them is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from itertools import chain
from sys import maxsize
from typing import Any, Protocol

from duetime.model.ids import segment_of
from duetime.model.lease import Node
from duetime.model.limit import Queue
from duetime.model.permits import KeyUse
from duetime.model.schedule import Change, Schedule, ScheduleVersion
from duetime.model.stored import LimitKeyRow, QueueRow, Record, RowKey, RowKind, StoredRow, row_key
from duetime.stores.redis.bulk_jobs import BATCH, RedisJobRows, batches
from duetime.stores.redis.claim import KEY_USE
from duetime.stores.redis.connection import Argument, RedisConnection
from duetime.stores.redis.nodes import RedisNodes, node_row
from duetime.stores.redis.queues import queue_rows, settings_of
from duetime.stores.redis.records import record_name, record_of, record_row
from duetime.stores.redis.rows import pairs
from duetime.stores.redis.schedule_rows import (
    instant,
    schedule_name,
    schedule_of,
    schedule_row,
    version_of,
    version_row,
)
from duetime.stores.row_values import by_owner

_END = b"\xff"  # after what follows a name


class Table(Protocol):
    """The rows of a kind."""

    async def page(self, after: RowKey | None, until: RowKey | None, limit: int) -> Sequence[StoredRow]: ...

    async def remove(self, rows: Sequence[Any]) -> None: ...

    async def add(self, rows: Sequence[Any]) -> None: ...


class RedisRows:
    def __init__(self, connection: RedisConnection, nodes: RedisNodes) -> None:
        keys = StoreKeys(connection)
        self._jobs = RedisJobRows(connection)
        self._tables: dict[RowKind, Table] = {
            RowKind.NODES: NodeTable(keys, nodes),
            RowKind.QUEUES: QueueTable(keys),
            RowKind.LIMIT_KEYS: LimitKeyTable(keys),
            RowKind.SCHEDULES: ScheduleTable(keys),
            RowKind.VERSIONS: VersionTable(keys),
            RowKind.RECORDS: RecordTable(keys),
        }

    async def read(self, kind: RowKind, after: RowKey | None, limit: int) -> list[StoredRow]:
        if kind is RowKind.JOBS:
            return list(await self._jobs.read(after, limit))
        return list(await self._tables[kind].page(after, None, limit))

    async def write(
        self, kind: RowKind, rows: Sequence[Any], after: RowKey | None, until: RowKey | None
    ) -> None:
        if kind is RowKind.JOBS:
            await self._jobs.write(rows, after, until)
            return
        table = self._tables[kind]
        for some in batches(await table.page(after, until, maxsize)):
            await table.remove(some)
        for some in batches(rows):
            await table.add(some)


class StoreKeys:
    """Commands on keys of the store."""

    def __init__(self, connection: RedisConnection) -> None:
        self.run = connection.run
        self._connection = connection

    async def __call__(self, command: str, key: str, *arguments: Argument) -> Any:
        return await self._connection.command(command, f"{self._connection.address.keys}{key}", *arguments)

    async def each(self, command: str, key: str, arguments: Iterable[Argument]) -> None:
        """Unless there are no arguments."""
        if some := list(arguments):
            await self(command, key, *some)

    async def pages(
        self, read: Callable[[bytes, int], Any], first: bytes, name: Callable[[Any], bytes], limit: int
    ) -> list[Any]:
        """Rows of a sorted set. `read` takes the lower bound and a number; `name` is that of a row."""
        found: list[Any] = []
        while len(found) < limit:
            number = min(limit - len(found), BATCH)
            some = await read(b"(" + name(found[-1]) if found else first, number)
            found += some
            if len(some) < number:
                break
        return found


def _flat(pairs: Iterable[tuple[Argument, Argument]]) -> Iterable[Argument]:
    return chain.from_iterable(pairs)


def _selected(rows: Iterable[StoredRow], after: RowKey | None, until: RowKey | None, limit: int) -> list[Any]:
    inside = [
        row
        for row in rows
        if (after is None or row_key(row) > after) and (until is None or row_key(row) <= until)
    ]
    return nsmallest(limit, inside, key=row_key)


class NodeTable:
    def __init__(self, keys: StoreKeys, nodes: RedisNodes) -> None:
        self._keys = keys
        self._nodes = nodes

    async def page(self, after: RowKey | None, until: RowKey | None, limit: int) -> Sequence[Node]:
        return _selected(await self._nodes.known(), after, until, limit)

    async def remove(self, rows: Sequence[Node]) -> None:
        """The number of running jobs belongs to the jobs."""
        for command, key in (("HDEL", "nodes"), ("ZREM", "alive"), ("SREM", "workers"), ("SREM", "dead")):
            await self._keys(command, key, *(node.id for node in rows))

    async def add(self, rows: Sequence[Node]) -> None:
        keys, alive = self._keys, [node for node in rows if not node.dead]
        await keys("HSET", "nodes", *_flat((node.id, node_row(node)) for node in rows))
        await keys.each("ZADD", "alive", _flat((node.lease_until, node.id) for node in alive))
        await keys.each("SADD", "workers", (node.id for node in alive if "worker" in node.roles))
        await keys.each("SADD", "dead", (node.id for node in rows if node.dead))
        await keys.run("raise_counter", "node", max(node.id for node in rows))


class QueueTable:
    def __init__(self, keys: StoreKeys) -> None:
        self._keys = keys

    async def page(self, after: RowKey | None, until: RowKey | None, limit: int) -> Sequence[QueueRow]:
        used, settings, _ = await self._keys.run("queues", 0)
        tenants = by_owner(sorted(name.decode().split("\0") for name in used))
        queues = {name: Queue(name) for name in tenants}
        queues |= {name.decode(): settings_of(name.decode(), row) for name, row in pairs(settings)}
        rows = [QueueRow(queue, tenants.get(name, ()), 0) for name, queue in queues.items()]
        found = _selected(rows, after, until, limit)
        if not found:
            return []
        spent = await self._keys("HMGET", "queue_spent", *(row.queue.name for row in found))
        return [row._replace(spent_until=int(one or 0)) for row, one in zip(found, spent, strict=True)]

    async def remove(self, rows: Sequence[QueueRow]) -> None:
        for key in ("queues", "restricted", "queue_spent"):
            await self._keys("HDEL", key, *(row.queue.name for row in rows))
        await self._keys.each("SREM", "used", _used(rows))

    async def add(self, rows: Sequence[QueueRow]) -> None:
        keys, settings = self._keys, {row.queue.name: queue_rows(row.queue) for row in rows}
        spent = {row.queue.name: row.spent_until for row in rows if row.spent_until}
        restricted = {name: row for name, (_, row) in settings.items() if row}
        await keys("HSET", "queues", *_flat((name, row) for name, (row, _) in settings.items()))
        await keys.each("HSET", "restricted", _flat(restricted.items()))
        await keys.each("HSET", "queue_spent", _flat(spent.items()))
        await keys.each("SADD", "used", _used(rows))


def _used(rows: Sequence[QueueRow]) -> list[str]:
    return [f"{row.queue.name}\0{tenant}" for row in rows for tenant in row.tenants]


class LimitKeyTable:
    def __init__(self, keys: StoreKeys) -> None:
        self._keys = keys

    async def page(self, after: RowKey | None, until: RowKey | None, limit: int) -> Sequence[LimitKeyRow]:
        found: dict[bytes, bytes] = {}
        cursor = b""
        while cursor != b"0":
            cursor, some = await self._keys("HSCAN", "key_use", cursor or 0, "COUNT", BATCH)
            found |= dict(pairs(some))
        rows = [LimitKeyRow(name.decode(), KeyUse(0, *KEY_USE.unpack(use))) for name, use in found.items()]
        return _selected(rows, after, until, limit)

    async def remove(self, rows: Sequence[LimitKeyRow]) -> None:
        await self._keys("HDEL", "key_use", *(row.name for row in rows))

    async def add(self, rows: Sequence[LimitKeyRow]) -> None:
        values = _flat((row.name, KEY_USE.pack(*row.use[1:])) for row in rows)
        await self._keys("HSET", "key_use", *values)


class ScheduleTable:
    def __init__(self, keys: StoreKeys) -> None:
        self._keys = keys

    async def page(self, after: RowKey | None, until: RowKey | None, limit: int) -> Sequence[Schedule]:
        last = b"+" if until is None else b"(" + schedule_name(*until) + _END

        async def read(first: bytes, number: int) -> list[Schedule]:
            rows = await self._keys.run("get_schedules", "names", first, last, number)
            return [schedule_of(*row) for row in pairs(rows)]

        first = b"-" if after is None else b"(" + schedule_name(*after) + _END
        return await self._keys.pages(read, first, _schedule_member, limit)

    async def remove(self, rows: Sequence[Schedule]) -> None:
        await self._keys("HDEL", "schedules", *(row.id.bytes for row in rows))
        await self._keys("ZREM", "schedule_names", *map(_schedule_member, rows))
        for row in rows:
            await self._keys("ZREM", f"cursors:{segment_of(row.id)}", row.id.bytes)

    async def add(self, rows: Sequence[Schedule]) -> None:
        names = [_schedule_member(row) for row in rows]
        await self._keys("HSET", "schedules", *_flat((row.id.bytes, schedule_row(row)) for row in rows))
        await self._keys("ZADD", "schedule_names", *_flat((0, name) for name in names))
        for row in rows:
            if row.next_fire_time is not None and not row.paused:
                await self._keys("ZADD", f"cursors:{segment_of(row.id)}", row.next_fire_time, row.id.bytes)


def _schedule_member(schedule: Schedule) -> bytes:
    return schedule_name(schedule.draft.tenant, schedule.draft.name) + schedule.id.bytes


class VersionTable:
    def __init__(self, keys: StoreKeys) -> None:
        self._keys = keys

    async def page(self, after: RowKey | None, until: RowKey | None, limit: int) -> Sequence[ScheduleVersion]:
        last = b"+" if until is None else b"(" + _version_end(*until)

        async def read(first: bytes, number: int) -> list[bytes]:
            return list(await self._keys("ZRANGE", "versions", first, last, "BYLEX", "LIMIT", 0, number))

        first = b"-" if after is None else b"(" + _version_end(*after)
        found = await self._keys.pages(read, first, bytes, limit)
        return [version_of(_name_in(member), member) for member in found]

    async def remove(self, rows: Sequence[ScheduleVersion]) -> None:
        for row in rows:
            end = _version_end(row.draft.tenant, row.draft.name, row.version)
            await self._keys("ZREMRANGEBYLEX", "versions", b"[" + end[:-1], b"(" + end)
        await self._keys.each("ZREM", "removed", _removed(rows))

    async def add(self, rows: Sequence[ScheduleVersion]) -> None:
        await self._keys("ZADD", "versions", *_flat((0, version_row(row)) for row in rows))
        # Retention looks for the oldest version when it comes to a name.
        await self._keys.each("ZADD", "removed", _flat((0, name) for name in _removed(rows)))


def _version_end(tenant: str, name: str, version: int) -> bytes:
    return schedule_name(tenant, name) + instant(version) + _END


def _name_in(member: bytes) -> bytes:
    return member[: member.index(b"\0", member.index(b"\0") + 1) + 1]


def _removed(rows: Sequence[ScheduleVersion]) -> list[bytes]:
    return [
        schedule_name(row.draft.tenant, row.draft.name) + row.draft.id.bytes
        for row in rows
        if row.change is Change.REMOVED
    ]


class RecordTable:
    def __init__(self, keys: StoreKeys) -> None:
        self._keys = keys

    async def page(self, after: RowKey | None, until: RowKey | None, limit: int) -> Sequence[Record]:
        last = b"+" if until is None else b"[" + record_name(*until)

        async def read(first: bytes, number: int) -> list[Record]:
            rows = await self._keys.run("list_records", first, last, number)
            return [record_of(name, row) for name, row in pairs(rows)]

        first = b"-" if after is None else b"(" + record_name(*after)
        return await self._keys.pages(read, first, _record_member, limit)

    async def remove(self, rows: Sequence[Record]) -> None:
        for command, key in (("HDEL", "records"), ("ZREM", "record_names"), ("ZREM", "record_expiry")):
            await self._keys(command, key, *map(_record_member, rows))

    async def add(self, rows: Sequence[Record]) -> None:
        keys, names = self._keys, [_record_member(row) for row in rows]
        expiring = [row for row in rows if row.expires_at is not None]
        values = _flat((name, record_row(row)) for name, row in zip(names, rows, strict=True))
        await keys("HSET", "records", *values)
        await keys("ZREM", "record_expiry", *names)  # an expired record may have been here
        await keys("ZADD", "record_names", *_flat((0, name) for name in names))
        await keys.each(
            "ZADD",
            "record_expiry",
            _flat((row.expires_at or 0, _record_member(row)) for row in expiring),
        )
        await keys.run("raise_counter", "record", max(row.version for row in rows))


def _record_member(record: Record) -> bytes:
    return record_name(record.kind, record.tenant, record.key)

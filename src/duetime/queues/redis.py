"""Redis Streams: a stream for each queue and group of priorities, with one consumer group. Needs Redis 7.

An acknowledged entry is deleted, so the length of a stream is its depth and the memory is bounded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from duetime.errors import ConfigError
from duetime.model.instant import SECOND, Micros
from duetime.queue import Message, Received
from duetime.queues.address import parse, trusted_certificates
from duetime.queues.wire import GROUPS, from_bytes, group_of, to_bytes

CONSUMERS = "workers"  # the group, and the one name under which all its members read
FIELD = b"message"
# A worker acknowledges within milliseconds: what is older belongs to a worker that has died.
REDELIVERY_TIMEOUT = 30 * SECOND
MAX_BLOCK = 2 * SECOND  # between two looks for entries of dead workers
SOCKET_TIMEOUT = 10.0  # seconds
_Reply = TypeVar("_Reply")

# KEYS: streams, most urgent first. ARGV: group, how many entries, idle time of a dead worker's entry in ms.
_RECEIVE = """
local found, room = {}, tonumber(ARGV[2])
for _, key in ipairs(KEYS) do
    local entries
    if room > 0 then
        entries = redis.call(
            'XAUTOCLAIM', key, ARGV[1], ARGV[1], ARGV[3], '0-0', 'COUNT', room)[2]
        for _, entry in ipairs(entries) do table.insert(found, {key, entry[1], entry[2]}) end
        room = room - #entries
    end
    if room > 0 then
        local read = redis.call(
            'XREADGROUP', 'GROUP', ARGV[1], ARGV[1], 'COUNT', room, 'STREAMS', key, '>')
        entries = read and read[1][2] or {}
        for _, entry in ipairs(entries) do table.insert(found, {key, entry[1], entry[2]}) end
        room = room - #entries
    end
end
return found
"""


class _Entry(NamedTuple):
    stream: bytes
    id: bytes


class RedisQueue:
    """URL: `redis://user:password@host:6379/0`, with TLS `rediss://`. Option: `ca` (a file with
    certificates); options of redis-py may follow."""

    def __init__(self, url: str) -> None:
        self._address = parse(url, frozenset({"ca"}))
        ca = trusted_certificates(self._address)
        options: dict[str, Any] = {"ssl_ca_certs": ca} if ca else {}  # only a connection with TLS knows it
        try:
            self._client = Redis.from_url(
                self._address.url,
                protocol=2,
                socket_timeout=SOCKET_TIMEOUT,
                socket_connect_timeout=SOCKET_TIMEOUT,
                retry=Retry(NoBackoff(), 1),  # the first call after a restart of the server
                **options,
            )
        except (ValueError, TypeError) as error:
            raise ConfigError(f"queue: {self._address.place}: {error}") from None
        self._receive = self._client.register_script(_RECEIVE)
        self._unacknowledged: defaultdict[bytes, set[bytes]] = defaultdict(set)
        self._surplus: list[Received] = []

    async def open(self) -> None:
        await self._guarded(self._client.ping)

    async def close(self) -> None:
        """Give back what is not acknowledged: as old entries, which other workers take."""

        async def give_back() -> None:
            async with self._client.pipeline(transaction=False) as pipeline:
                for stream, ids in self._unacknowledged.items():
                    if ids:
                        idle = 2 * REDELIVERY_TIMEOUT // 1000
                        pipeline.xclaim(stream, CONSUMERS, CONSUMERS, 0, list(ids), idle=idle, justid=True)
                await pipeline.execute(raise_on_error=False)

        try:
            if any(self._unacknowledged.values()):
                await give_back()
        except (RedisError, OSError):
            pass  # they are delivered again after REDELIVERY_TIMEOUT
        finally:
            self._unacknowledged.clear()
            self._surplus.clear()
            await self._client.aclose()

    async def push(self, messages: Sequence[Message]) -> None:
        async def add() -> None:
            async with self._client.pipeline(transaction=False) as pipeline:
                for message in messages:
                    stream = self._stream(message.queue, group_of(message.priority))
                    pipeline.xadd(stream, {FIELD: to_bytes(message)})
                await pipeline.execute()

        await self._guarded(add)

    async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
        streams = [self._stream(queue, group) for group in GROUPS for queue in queues]
        if self._surplus:
            found, self._surplus = self._surplus[:limit], self._surplus[limit:]
            return found
        while True:
            found = await self._declared(streams, partial(self._read, streams, limit))
            if found or timeout <= 0:
                return found
            step = min(timeout, MAX_BLOCK)
            found = await self._declared(streams, partial(self._wait, streams, step))
            if found:
                # One of each stream that had any: there may be more streams than the caller has room for.
                self._surplus = found[limit:]
                return found[:limit]
            timeout -= step

    async def acknowledge(self, deliveries: Sequence[Received]) -> None:
        ids: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for delivery in deliveries:
            ids[delivery.receipt.stream].append(delivery.receipt.id)

        async def remove() -> None:
            # No transaction: while the user `default` is off, Redis 7 loads none from its AOF. The entry goes
            # first: a receipt without its entry does no harm, an entry without its receipt stays forever.
            async with self._client.pipeline(transaction=False) as pipeline:
                for stream, some in ids.items():
                    pipeline.xdel(stream, *some)
                    pipeline.xack(stream, CONSUMERS, *some)
                await pipeline.execute()

        await self._guarded(remove)
        for stream, some in ids.items():
            self._unacknowledged[stream].difference_update(some)

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        wanted = [(queue, group) for queue in queues for group in GROUPS]

        async def lengths() -> list[int]:
            async with self._client.pipeline(transaction=False) as pipeline:
                for queue, group in wanted:
                    pipeline.xlen(self._stream(queue, group))
                return await pipeline.execute()

        return dict(zip(wanted, await self._guarded(lengths), strict=True))

    def _stream(self, queue: str, group: int) -> str:
        # One hash tag: in a Redis Cluster a command can read only streams of one slot.
        return f"{{{self._address.prefix}}}:{group}:{queue}"

    async def _read(self, streams: list[str], limit: int) -> list[Received]:
        rows = await self._receive(keys=streams, args=[CONSUMERS, limit, REDELIVERY_TIMEOUT // 1000])
        return [self._delivery(stream, entry_id, fields) for stream, entry_id, fields in rows]

    async def _wait(self, streams: list[str], timeout: Micros) -> list[Received]:
        read: Any = await self._client.xreadgroup(
            CONSUMERS, CONSUMERS, dict.fromkeys(streams, ">"), count=1, block=max(1, timeout // 1000)
        )
        return [
            self._delivery(stream, entry_id, [part for pair in fields.items() for part in pair])
            for stream, entries in read or ()
            for entry_id, fields in entries
        ]

    def _delivery(self, stream: bytes, entry_id: bytes, fields: list[bytes]) -> Received:
        self._unacknowledged[stream].add(entry_id)
        body = fields[1] if fields[:1] == [FIELD] else b""
        return Received(from_bytes(body), _Entry(stream, entry_id))

    async def _declared(self, streams: list[str], call: Callable[[], Awaitable[_Reply]]) -> _Reply:
        """Create the consumer groups if they are missing: at first, or after the server was emptied."""
        try:
            return await self._guarded(call, passes=True)
        except ResponseError:
            await self._guarded(lambda: self._create_groups(streams))
            return await self._guarded(call)

    async def _create_groups(self, streams: list[str]) -> None:
        async with self._client.pipeline(transaction=False) as pipeline:
            for stream in streams:
                pipeline.xgroup_create(stream, CONSUMERS, id="0", mkstream=True)
            await pipeline.execute(raise_on_error=False)  # BUSYGROUP: it exists

    async def _guarded(self, call: Callable[[], Awaitable[_Reply]], passes: bool = False) -> _Reply:
        try:
            return await call()
        except (RedisError, OSError) as error:
            if passes and _is_group_missing(error):
                raise
            raise self._address.unavailable(error) from error


def _is_group_missing(error: Any) -> bool:
    return isinstance(error, ResponseError) and ("NOGROUP" in str(error) or "UNBLOCKED" in str(error))

"""NATS JetStream: one file stream that keeps messages until they are acknowledged; a subject and a durable
pull consumer for each queue and group of priorities."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, Error
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import NoStreamResponseError, NotFoundError

from duetime.errors import ConfigError
from duetime.model.codec import encode
from duetime.model.instant import SECOND, Micros
from duetime.queue import Message, Received
from duetime.queues.address import BrokerAddress, parse, safe_name
from duetime.queues.reconnecting import CALL_TIMEOUT, Reconnecting, WakeUp
from duetime.queues.wire import GROUPS, from_bytes, group_of, to_bytes

MAX_NAME = 180
# A worker acknowledges within milliseconds: what is older belongs to a worker that has died.
REDELIVERY_TIMEOUT = 30.0  # seconds
CLOSE_TIMEOUT = 1.0  # seconds
MAX_UNACKNOWLEDGED = 100_000  # of one consumer, by all workers together
MAX_PUBLISHING = 4000  # messages that wait for their confirmation
OPTIONS = frozenset({"ca", "credentials", "replicas"})
NO_CONSUMER = "503"  # the status of a request for a consumer or stream that was deleted
_Answer = TypeVar("_Answer")


class NatsQueue:
    """URL: `nats://user:password@host:4222`, with TLS `tls://`. Options: `ca` (a file with certificates),
    `credentials` (a .creds file), `replicas` (of the stream, in a cluster)."""

    def __init__(self, url: str) -> None:
        self._address = parse(url, OPTIONS)
        replicas = self._address.options.get("replicas", "1")
        if replicas not in {"1", "3", "5"}:
            raise ConfigError(f"queue: replicas={replicas} must be 1, 3 or 5")
        self._connection = Reconnecting(self._address, self._connect, (Error, ssl.SSLError))

    async def open(self) -> None:
        async with self._connection.use() as session:
            await session.declare_stream()

    async def close(self) -> None:
        session = self._connection.session
        try:
            if session and not session.is_closed:
                with suppress(Error, OSError):
                    await session.give_back()
        finally:  # also if the caller does not wait for a broker that hangs
            await self._connection.close()

    async def push(self, messages: Sequence[Message]) -> None:
        async with self._connection.use() as session:
            try:
                await session.publish(messages)
            except NoStreamResponseError:  # it was deleted
                await session.declare_stream()
                await session.publish(messages)

    async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
        now = asyncio.get_running_loop().time
        give_up_at = now() + timeout / SECOND
        async with self._connection.use() as session:
            consumers = [session.consumer(queue, group) for group in GROUPS for queue in queues]
            while True:
                taken = await session.take(consumers, limit)
                remaining = give_up_at - now()
                if taken or remaining <= 0:
                    return taken
                await session.await_messages(consumers, remaining)
                await session.change.wait(give_up_at)

    async def acknowledge(self, deliveries: Sequence[Received]) -> None:
        if deliveries:
            async with self._connection.use() as session:
                await session.acknowledge([delivery.receipt for delivery in deliveries])

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        async with self._connection.use() as session:
            counts = await session.counts()
        return {
            (queue, group): counts.get(session.consumer(queue, group).subject, 0)
            for queue in queues
            for group in GROUPS
        }

    async def _connect(self) -> NatsSession:
        ca = self._address.options.get("ca")
        session = NatsSession(self._address)
        try:
            await session.connect(
                self._address.url,
                tls=ssl.create_default_context(cafile=ca) if ca else None,
                user_credentials=self._address.options.get("credentials"),
            )
        except BaseException:
            await session.close()
            raise
        return session


class _Consumer:
    """The messages of one queue and group."""

    def __init__(self, stream: str, queue: str, group: int) -> None:
        self.name = f"{safe_name(queue, MAX_NAME)}-{group}"
        self.subject = f"{stream}.{safe_name(queue, MAX_NAME)}.{group}"
        self.buffer: deque[Received] = deque()
        self.is_declared = False
        self.awaited_until = 0.0  # a request waits for its next message, by the loop's clock
        self.missing = 0  # messages of a request that does not wait
        self.end: asyncio.Future[str] | None = None  # of that request: its status


class NatsSession:
    """One connection. Messages come to two inboxes: in answer to requests that wait, and to others."""

    def __init__(self, address: BrokerAddress) -> None:
        self.client = Client()
        self.change = WakeUp()
        self._stream = address.prefix
        self._replicas = int(address.options.get("replicas", "1"))
        self._jetstream = self.client.jetstream(
            timeout=CALL_TIMEOUT, publish_async_max_pending=MAX_PUBLISHING
        )
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inboxes = (self.client.new_inbox(), self.client.new_inbox())
        self._consumers: dict[tuple[str, int], _Consumer] = {}
        self._by_subject: dict[str, _Consumer] = {}
        self._unacknowledged: set[str] = set()

    @property
    def is_closed(self) -> bool:
        return not self.client.is_connected

    async def connect(self, url: str, **options: Any) -> None:
        await self.client.connect(
            url,
            allow_reconnect=False,
            max_reconnect_attempts=1,  # of the first connection, immediately
            reconnect_time_wait=0,
            connect_timeout=int(CALL_TIMEOUT),
            closed_cb=self._closed,
            error_cb=_ignore,  # the verbs raise it
            **options,
        )
        for inbox, receive in zip(self._inboxes, (self._on_answer, self._on_awaited), strict=True):
            await self.client.subscribe(f"{inbox}.*", cb=receive)

    async def close(self) -> None:
        """The client library waits for the end of a connection that TLS has refused, which never comes."""
        with suppress(Error, OSError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self.client.close()

    async def give_back(self) -> None:
        """Other workers get immediately what is not acknowledged."""
        await self._answer_all(self._unacknowledged, b"-NAK")

    async def acknowledge(self, receipts: Sequence[str]) -> None:
        await self._answer_all(receipts, b"+ACK")
        self._unacknowledged.difference_update(receipts)

    async def declare_stream(self) -> None:
        config = StreamConfig(
            name=self._stream,
            subjects=[f"{self._stream}.*.*"],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
            num_replicas=self._replicas,
        )
        await self._until_lost(self._jetstream.add_stream(config))
        for consumer in self._consumers.values():
            consumer.is_declared = False

    async def counts(self) -> dict[str, int]:
        try:
            info = await self._until_lost(self._jetstream.stream_info(self._stream, subjects_filter=">"))
        except NotFoundError:
            return {}
        return info.state.subjects or {}

    def consumer(self, queue: str, group: int) -> _Consumer:
        found = self._consumers.get((queue, group))
        if found is None:
            found = self._consumers[queue, group] = _Consumer(self._stream, queue, group)
            self._by_subject[found.subject] = self._by_subject[found.name] = found
        return found

    async def publish(self, messages: Sequence[Message]) -> None:
        confirmations = [
            await self._jetstream.publish_async(
                self.consumer(message.queue, group_of(message.priority)).subject, to_bytes(message)
            )
            for message in messages
        ]
        if confirmations:
            await self._until_lost(asyncio.gather(*confirmations))

    async def take(self, consumers: Sequence[_Consumer], limit: int) -> list[Received]:
        """What is there now, most urgent first. Where a request waits, there is nothing."""
        taken: list[Received] = []
        now = asyncio.get_running_loop().time()
        for consumer in consumers:
            if not consumer.buffer and consumer.awaited_until <= now:
                await self._fetch(consumer, limit - len(taken))
            while consumer.buffer and len(taken) < limit:
                taken.append(consumer.buffer.popleft())
            if len(taken) == limit:
                break
        return taken

    async def await_messages(self, consumers: Sequence[_Consumer], timeout: float) -> None:
        """Request one message of each that has none."""
        now = asyncio.get_running_loop().time()
        for consumer in consumers:
            if consumer.awaited_until <= now and not consumer.buffer:
                consumer.awaited_until = now + timeout
                request = {"batch": 1, "expires": max(1, int(timeout * 1e9))}
                await self._request(consumer, self._inboxes[1], request)

    async def _fetch(self, consumer: _Consumer, batch: int) -> None:
        for _ in range(2):
            if not consumer.is_declared:
                await self._declare(consumer)
            consumer.end, consumer.missing = asyncio.get_running_loop().create_future(), batch
            await self._request(consumer, self._inboxes[0], {"batch": batch, "no_wait": True})
            if await self._until_lost(consumer.end) != NO_CONSUMER:
                return
            await self.declare_stream()  # it was deleted

    async def _declare(self, consumer: _Consumer) -> None:
        config = ConsumerConfig(
            durable_name=consumer.name,
            filter_subject=consumer.subject,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=REDELIVERY_TIMEOUT,
            max_ack_pending=MAX_UNACKNOWLEDGED,
        )
        try:
            await self._until_lost(self._jetstream.add_consumer(self._stream, config))
        except NotFoundError:  # the stream was deleted
            await self.declare_stream()
            await self._until_lost(self._jetstream.add_consumer(self._stream, config))
        consumer.is_declared = True

    async def _request(self, consumer: _Consumer, inbox: str, request: dict[str, Any]) -> None:
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{consumer.name}"
        await self.client.publish(subject, encode(request), reply=f"{inbox}.{consumer.name}")

    async def _on_answer(self, message: Msg) -> None:
        consumer, status = self._read(message)
        if status is None:
            consumer.missing -= 1
        is_complete = status is not None or consumer.missing == 0
        if is_complete and consumer.end and not consumer.end.done():
            consumer.end.set_result(status or "")

    async def _on_awaited(self, message: Msg) -> None:
        consumer, _ = self._read(message)
        consumer.awaited_until = 0.0
        self.change.announce()

    def _read(self, message: Msg) -> tuple[_Consumer, str | None]:
        """Its consumer, and its status if it is not a message of the stream."""
        status = (message.headers or {}).get("Status")
        if status is not None and not message.reply:
            return self._by_subject[message.subject.rpartition(".")[2]], status
        consumer = self._by_subject[message.subject]
        self._unacknowledged.add(message.reply)
        consumer.buffer.append(Received(from_bytes(message.data), message.reply))
        return consumer, None

    async def _answer_all(self, receipts: Iterable[str], answer: bytes) -> None:
        for receipt in receipts:
            await self.client.publish(receipt, answer)
        await self._until_lost(self.client.flush(int(CALL_TIMEOUT)))

    async def _closed(self) -> None:
        if not self._lost.done():
            self._lost.set_result(None)
        self.change.announce()

    async def _until_lost(self, awaited: Awaitable[_Answer]) -> _Answer:
        """The answer, unless the connection ends before."""
        answer = asyncio.ensure_future(awaited)
        ends: set[asyncio.Future[Any]] = {answer, self._lost}
        try:
            await asyncio.wait(ends, timeout=CALL_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        finally:
            answer.cancel()  # does nothing if it is there
        if not answer.done():
            raise ConnectionClosedError if self._lost.done() else TimeoutError("no answer of the broker")
        return answer.result()


async def _ignore(_error: Exception) -> None: ...

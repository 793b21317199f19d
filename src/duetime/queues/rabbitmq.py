"""RabbitMQ: a durable classic queue for each queue and group of priorities, ordered by priority.

The groups have queues of their own, because RabbitMQ counts the messages of a queue and not those of a
priority, and because an urgent message must not wait until less urgent ones are acknowledged."""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, cast

import aiormq
from aiormq.abc import AbstractConnection, DeliveredMessage
from aiormq.exceptions import AMQPError, PublishError
from pamqp.commands import Basic
from pamqp.common import FieldTable

from duetime.model.instant import SECOND, Micros
from duetime.queue import Message, Received
from duetime.queues.address import parse, safe_name, trusted_certificates
from duetime.queues.reconnecting import CALL_TIMEOUT, Reconnecting, WakeUp
from duetime.queues.wire import GROUPS, from_bytes, group_of, to_bytes

MAX_NAME = 200  # of 255 bytes
PREFETCH = 100  # messages of each queue; with less, waiting for the network is the limit
ARGUMENTS: FieldTable = {"x-max-priority": 10}


class _Tag(NamedTuple):
    session: RabbitSession
    number: int


class RabbitQueue:
    """URL: `amqp://user:password@host:5672/vhost`, with TLS `amqps://`. Option: `ca` (a file with
    certificates); options of aiormq may follow."""

    def __init__(self, url: str) -> None:
        self._address = parse(url, frozenset({"ca"}))
        ca = trusted_certificates(self._address)
        errors = (AMQPError, RuntimeError)  # RuntimeError: a call on a channel that was closed
        self._connection = Reconnecting(self._address, partial(_connect, self._address.url, ca), errors)

    async def open(self) -> None:
        async with self._connection.use():
            pass

    async def close(self) -> None:
        await self._connection.close()

    async def push(self, messages: Sequence[Message]) -> None:
        async with self._connection.use() as session:
            named = [(self._name(each.queue, group_of(each.priority)), each) for each in messages]
            await session.declare(name for name, _ in named)
            unroutable = await session.publish(named)
            if unroutable:  # the queue was deleted
                session.declared.clear()
                await session.declare(name for name, _ in unroutable)
                await session.publish(unroutable)

    async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
        names = [self._name(queue, group) for group in GROUPS for queue in queues]
        give_up_at = asyncio.get_running_loop().time() + timeout / SECOND
        async with self._connection.use() as session:
            while True:
                await session.consume(names)
                taken = session.take(names, limit)
                if taken:
                    return taken
                if not await session.change.wait(give_up_at):
                    await session.check()
                    return []

    async def acknowledge(self, deliveries: Sequence[Received]) -> None:
        # What a lost connection delivered cannot be acknowledged: it is delivered again.
        tags = [
            each.receipt.number for each in deliveries if each.receipt.session is self._connection.session
        ]
        if tags:
            async with self._connection.use() as session:
                await session.acknowledge(tags)

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        """Without the messages that are on their way to a worker: RabbitMQ does not say how many."""
        async with self._connection.use() as session:
            return {
                (queue, group): await session.count(self._name(queue, group))
                for queue in queues
                for group in GROUPS
            }

    def _name(self, queue: str, group: int) -> str:
        return f"{self._address.prefix}.{safe_name(queue, MAX_NAME)}.{group}"


class RabbitSession:
    """One connection, and what is declared and received on it."""

    def __init__(
        self, connection: AbstractConnection, publisher: aiormq.Channel, consumer: aiormq.Channel
    ) -> None:
        self._connection = connection
        self._publisher = publisher
        self._consumer = consumer
        self.declared: set[str] = set()
        self._buffers: defaultdict[str, deque[Received]] = defaultdict(deque)
        self.change = WakeUp()  # a message came, a queue was deleted, or the connection is lost
        self._consumed: set[str] = set()
        self._unacknowledged: set[int] = set()  # tags of messages that were delivered
        consumer.on_consumer_cancel_callbacks.add(self._cancelled)
        for part in (connection, publisher, consumer):
            part.closing.add_done_callback(lambda _: self.change.announce())

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed or self._publisher.is_closed or self._consumer.is_closed

    async def close(self) -> None:
        with suppress(AMQPError, OSError, RuntimeError):
            async with asyncio.timeout(CALL_TIMEOUT):
                await self._connection.close()

    async def declare(self, names: Iterable[str]) -> None:
        for name in dict.fromkeys(names):
            if name not in self.declared:
                await self.count(name)
                self.declared.add(name)

    async def count(self, name: str) -> int:
        declared = await self._publisher.queue_declare(
            name, durable=True, arguments=ARGUMENTS, timeout=CALL_TIMEOUT
        )
        return declared.message_count or 0

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[tuple[str, Message]]:
        """Returns those that have no queue, when the broker has stored all others."""
        results = await asyncio.gather(
            *(self._publish(name, message) for name, message in messages), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, PublishError):
                raise result
        return [each for each, result in zip(messages, results, strict=True) if result is not None]

    async def _publish(self, name: str, message: Message) -> None:
        confirmed = await self._publisher.basic_publish(
            to_bytes(message),
            routing_key=name,
            mandatory=True,
            properties=Basic.Properties(delivery_mode=2, priority=message.priority),
            timeout=CALL_TIMEOUT,
            wait=False,
        )
        if not isinstance(confirmed, Basic.Ack):
            raise AMQPError("the broker did not confirm a message")

    async def consume(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._consumed:
                await self.declare([name])
                await self._consumer.basic_consume(
                    name, self._deliver, consumer_tag=name, timeout=CALL_TIMEOUT
                )
                self._consumed.add(name)
        if self.is_closed:
            raise ConnectionError("the connection was lost")

    async def check(self) -> None:
        """That the broker answers: otherwise one that hangs would look like an empty one."""
        await self._consumer.basic_qos(prefetch_count=PREFETCH, timeout=CALL_TIMEOUT)

    def take(self, names: Sequence[str], limit: int) -> list[Received]:
        taken: list[Received] = []
        for name in names:
            while self._buffers[name] and len(taken) < limit:
                taken.append(self._buffers[name].popleft())
        return taken

    async def acknowledge(self, tags: Sequence[int]) -> None:
        """Together, up to the oldest message that is not acknowledged; others one by one."""
        self._unacknowledged.difference_update(tags)
        oldest = min(self._unacknowledged, default=max(tags) + 1)
        frames = [(tag, False) for tag in tags if tag > oldest]
        if together := [tag for tag in tags if tag < oldest]:
            frames.append((max(together), True))
        for tag, multiple in frames:
            await self._consumer.basic_ack(tag, multiple, wait=(tag, multiple) == frames[-1])

    async def _deliver(self, message: DeliveredMessage) -> None:
        tag = message.delivery_tag
        assert tag is not None
        assert message.consumer_tag is not None
        self._unacknowledged.add(tag)
        self._buffers[message.consumer_tag].append(Received(from_bytes(message.body), _Tag(self, tag)))
        self.change.announce()

    def _cancelled(self, frame: Basic.Cancel) -> None:
        """The queue was deleted."""
        self._consumed.discard(frame.consumer_tag)
        self.declared.discard(frame.consumer_tag)
        self.change.announce()


class BufferedConnection(aiormq.Connection):
    FRAME_BUFFER_SIZE = 1_000  # else a caller waits for the socket after every ten messages


async def _connect(url: str, ca: str | None) -> RabbitSession:
    context = ssl.create_default_context(cafile=ca) if ca else None
    connection = BufferedConnection(url, context=context)
    await connection.connect()
    publisher = cast(aiormq.Channel, await connection.channel(on_return_raises=True))
    consumer = cast(aiormq.Channel, await connection.channel(publisher_confirms=False))
    await consumer.basic_qos(prefetch_count=PREFETCH)
    return RabbitSession(connection, publisher, consumer)

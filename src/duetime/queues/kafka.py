"""Kafka: a topic for each queue and group of priorities, and one consumer group for all workers.

Kafka commits an offset, not a message: it moves on when all messages before it are acknowledged."""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    IncompatibleBrokerVersion,
    KafkaError,
    TopicAlreadyExistsError,
    for_code,
)

from duetime.errors import ConfigError
from duetime.model.instant import SECOND, Micros
from duetime.queue import Message, Received
from duetime.queues.address import BrokerAddress, parse, safe_name
from duetime.queues.reconnecting import CALL_TIMEOUT, Reconnecting
from duetime.queues.wire import GROUPS, from_bytes, group_of, to_bytes

MAX_NAME = 180
# Of one topic: at most so many workers share its messages.
DEFAULT_PARTITIONS = "16"
DEFAULT_REPLICAS = "1"
MIN_WAIT = 0.1  # seconds, for messages that are here already
OPTIONS = frozenset({"ca", "partitions", "replicas", "sasl", "tls"})


class _Offset(NamedTuple):
    session: KafkaSession
    partition: TopicPartition
    number: int


class KafkaQueue:
    """URL: `kafka://user:password@host:9092`. Options: `tls=true`, `ca` (a file with certificates), `sasl`
    (the mechanism, PLAIN if there is a user), `partitions` and `replicas` of new topics."""

    def __init__(self, url: str) -> None:
        self._address = parse(url, OPTIONS)
        for name in ("partitions", "replicas"):
            value = self._address.options.get(name, "1")
            if not value.isdecimal():
                raise ConfigError(f"queue: {name}={value} must be a number")
        self._connection = Reconnecting(self._address, self._connect, (KafkaError,))

    async def open(self) -> None:
        async with self._connection.use():
            pass

    async def close(self) -> None:
        await self._connection.close()

    async def push(self, messages: Sequence[Message]) -> None:
        named = [(self._topic(each.queue, group_of(each.priority)), to_bytes(each)) for each in messages]
        async with self._connection.use() as session:
            await session.publish(named)

    async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
        topics = [self._topic(queue, group) for group in GROUPS for queue in queues]
        now = asyncio.get_running_loop().time
        give_up_at = now() + timeout / SECOND
        async with self._connection.use() as session:
            await session.subscribe(topics)
            while True:
                taken = await session.take(topics, limit)
                remaining = give_up_at - now()
                if taken or remaining <= 0:
                    return taken
                await session.wait(topics, remaining)

    async def acknowledge(self, deliveries: Sequence[Received]) -> None:
        # What a lost connection delivered cannot be acknowledged: it is delivered again.
        receipts = [each.receipt for each in deliveries if each.receipt.session is self._connection.session]
        if receipts:
            async with self._connection.use() as session:
                await session.commit(receipts)

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        async with self._connection.use() as session:
            return {
                (queue, group): await session.count(self._topic(queue, group))
                for queue in queues
                for group in GROUPS
            }

    def _topic(self, queue: str, group: int) -> str:
        return f"{self._address.prefix}.{safe_name(queue, MAX_NAME)}.{group}"

    async def _connect(self) -> KafkaSession:
        session = KafkaSession(self._address)
        try:
            await session.producer.start()
        except BaseException:
            await session.close()
            raise
        return session


class KafkaSession:
    """One producer, and consumers as they are needed."""

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._settings = _settings(address)
        self.producer = AIOKafkaProducer(**self._settings, acks="all")
        self._clients: list[Any] = [self.producer]
        self._consumer: AIOKafkaConsumer | None = None
        self._counter: AIOKafkaConsumer | None = None
        self._declared: set[str] = set()
        self._subscribed: set[str] = set()
        self.buffers: defaultdict[str, deque[Received]] = defaultdict(deque)
        self._received: defaultdict[TopicPartition, deque[int]] = defaultdict(deque)
        self._acknowledged: defaultdict[TopicPartition, set[int]] = defaultdict(set)
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True
        for client in reversed(self._clients):
            with suppress(KafkaError, OSError):
                async with asyncio.timeout(CALL_TIMEOUT):
                    await client.stop()

    async def publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        await self._declare(topic for topic, _ in messages)
        async with asyncio.timeout(CALL_TIMEOUT):
            sent = [await self.producer.send(topic, body) for topic, body in messages]
            await asyncio.gather(*sent)

    async def subscribe(self, topics: Sequence[str]) -> None:
        if self._subscribed.issuperset(topics):
            return
        await self._declare(topics)
        if self._consumer is None:
            self._consumer = await self._start_consumer()
        self._subscribed.update(topics)
        self._consumer.subscribe(sorted(self._subscribed), listener=_Listener(self))

    async def take(self, topics: Sequence[str], limit: int) -> list[Received]:
        """What this worker has got by now, most urgent first."""
        taken: list[Received] = []
        for topic in topics:
            if not self.buffers[topic]:
                await self._read([topic], limit - len(taken), 0)
            while self.buffers[topic] and len(taken) < limit:
                taken.append(self.buffers[topic].popleft())
            if len(taken) == limit:
                break
        return taken

    async def wait(self, topics: Sequence[str], timeout: float) -> None:
        await self._read(topics, 1, timeout)

    async def commit(self, receipts: Sequence[_Offset]) -> None:
        offsets: dict[TopicPartition, int] = {}
        for receipt in receipts:
            self._acknowledged[receipt.partition].add(receipt.number)
        for partition in {receipt.partition for receipt in receipts}:
            received, acknowledged = self._received[partition], self._acknowledged[partition]
            while received and received[0] in acknowledged:
                acknowledged.discard(received[0])
                offsets[partition] = received.popleft() + 1
        # Another worker has the partition now, and gets these messages, too.
        with suppress(CommitFailedError, IllegalStateError):
            if offsets and self._consumer:
                await self._consumer.commit(offsets)

    async def count(self, topic: str) -> int:
        await self._declare([topic])
        if self._counter is None:
            self._counter = await self._start_consumer()
        partitions = [TopicPartition(topic, number) for number in await self.producer.partitions_for(topic)]
        first = await self._counter.beginning_offsets(partitions)
        last = await self._counter.end_offsets(partitions)
        committed = await asyncio.gather(*(self._counter.committed(each) for each in partitions))
        return sum(
            last[each] - max(first[each], offset or 0)
            for each, offset in zip(partitions, committed, strict=True)
        )

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """They may go to another worker."""
        for partition in partitions:
            self._received.pop(partition, None)
            self._acknowledged.pop(partition, None)
            kept = [each for each in self.buffers[partition.topic] if each.receipt.partition != partition]
            self.buffers[partition.topic] = deque(kept)

    async def _read(self, topics: Collection[str], limit: int, timeout: float) -> None:
        assert self._consumer
        own = [each for each in self._consumer.assignment() if each.topic in topics]
        if not own and not timeout:
            return
        records: dict[TopicPartition, Any] = {}
        with suppress(TimeoutError):
            # Without partitions it waits until the consumer group assigns some, however long that takes.
            async with asyncio.timeout(max(timeout, MIN_WAIT)):
                records = await self._consumer.getmany(
                    *own, timeout_ms=max(0, int(timeout * 1000)), max_records=limit
                )
        for partition, some in records.items():
            for record in some:
                self._received[partition].append(record.offset)
                receipt = _Offset(self, partition, record.offset)
                self.buffers[partition.topic].append(Received(from_bytes(record.value or b""), receipt))

    async def _start_consumer(self) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **self._settings,
            group_id=self._address.prefix,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        self._clients.append(consumer)
        await consumer.start()
        return consumer

    async def _declare(self, topics: Iterable[str]) -> None:
        missing = set(topics) - self._declared
        if not missing:
            return
        partitions = int(self._address.options.get("partitions", DEFAULT_PARTITIONS))
        replicas = int(self._address.options.get("replicas", DEFAULT_REPLICAS))
        admin = AIOKafkaAdminClient(**self._settings)
        try:
            await admin.start()
            reply = await admin.create_topics([NewTopic(topic, partitions, replicas) for topic in missing])
            for topic, code, *_ in reply.topic_errors:
                if code not in {0, TopicAlreadyExistsError.errno}:
                    raise for_code(code)(f"topic {topic}")
        except (IncompatibleBrokerVersion, AttributeError):
            pass  # a broker without a controller, which creates topics when they are first used
        finally:
            await admin.close()
        for topic in missing:
            await self.producer.partitions_for(topic)
        self._declared.update(missing)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, session: KafkaSession) -> None:
        self._session = session

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._session.forget(revoked)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None: ...


def _settings(address: BrokerAddress) -> dict[str, Any]:
    parts = urlsplit(address.url)
    is_encrypted = address.options.get("tls") == "true" or "ca" in address.options
    settings: dict[str, Any] = {
        "bootstrap_servers": f"{parts.hostname}:{parts.port or 9092}",
        "request_timeout_ms": int(CALL_TIMEOUT * 1000),
        "security_protocol": ("SASL_" if parts.username else "") + ("SSL" if is_encrypted else "PLAINTEXT"),
    }
    if is_encrypted:
        settings["ssl_context"] = ssl.create_default_context(cafile=address.options.get("ca"))
    if parts.username:
        settings["sasl_mechanism"] = address.options.get("sasl", "PLAIN")
        settings["sasl_plain_username"] = unquote(parts.username)
        settings["sasl_plain_password"] = unquote(parts.password or "")
    return settings

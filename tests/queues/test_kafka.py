"""The driver for Kafka, on the mock broker of librdkafka. It cannot be restarted on its port, deletes no topics
and checks no credentials."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance

from duetime.errors import QueueUnavailable
from duetime.model.instant import SECOND
from duetime.queue import Received, TicketQueue
from duetime.queues import queue_for
from duetime.queues.address import safe_name
from duetime.testing.queue_conformance import (
    Broker,
    QueueConformance,
    message,
    numbers,
    opened,
    receive_until,
)
from tests.servers.brokers import KafkaMock
from tests.servers.process import free_port

PATIENCE = 60.0  # seconds, on a busy machine
LEADER_DELAY = 0.2  # seconds


class KafkaBroker:
    keeps_order = False
    repeats = True

    def __init__(self, server: KafkaMock, prefix: str) -> None:
        self._server = server
        self._prefix = prefix

    def queue(self) -> TicketQueue:
        return self._queue(self._server.port)

    def unreachable_queue(self) -> TicketQueue:
        return self._queue(free_port())

    async def push_foreign(self, queue: str, body: bytes) -> None:
        async with AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{self._server.port}") as producer:
            await producer.send_and_wait(f"{self._prefix}.{safe_name(queue, 180)}.6", body)

    def _queue(self, port: int) -> TicketQueue:
        return queue_for(f"kafka://127.0.0.1:{port}?prefix={self._prefix}")


@pytest.fixture(autouse=True)
def late_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock broker knows an assignment only for members that asked before their leader gives it."""
    join_as_leader = CoordinatorGroupRebalance._on_join_leader

    async def join_late(rebalance: Any, response: Any) -> Any:
        if len(response.members) > 1:
            await asyncio.sleep(LEADER_DELAY)
        return await join_as_leader(rebalance, response)

    monkeypatch.setattr(CoordinatorGroupRebalance, "_on_join_leader", join_late)


@pytest.fixture
async def broker(kafka_mock: KafkaMock, prefix: str) -> Broker:
    return KafkaBroker(kafka_mock, prefix)


class TestKafka(QueueConformance):
    @pytest.fixture
    async def broker(self, kafka_mock: KafkaMock, prefix: str) -> Broker:
        return KafkaBroker(kafka_mock, prefix)


async def test_messages_survive_that_their_partition_goes_to_another_worker(broker: Broker) -> None:
    """One worker has received some and not acknowledged them when a second one comes."""
    count = 60
    async with opened(broker.queue()) as first, opened(broker.queue()) as second:
        await first.push([message(number) for number in range(count)])
        held = await receive_until(first, lambda found: len(found) >= count // 2)
        given: list[Received] = []
        async with asyncio.timeout(PATIENCE):
            while not given:
                with suppress(QueueUnavailable):  # a node repeats it
                    given += await second.receive(["default"], 100, SECOND)
        await first.acknowledge(held)  # also of partitions that it has lost
        found = {*numbers(held), *numbers(given)}
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                for queue in (first, second):
                    with suppress(QueueUnavailable):
                        some = await queue.receive(["default"], 100, SECOND // 5)
                        await queue.acknowledge(some)
                        found.update(numbers(some))
        assert set(numbers(held)) & set(numbers(given)), "what was not acknowledged came again"


async def test_receive_ends_while_no_partition_is_assigned(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer group may take long to share its partitions; the client library waits for that."""

    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(AIOKafkaConsumer, "getmany", never)
    async with asyncio.timeout(PATIENCE), opened(broker.queue()) as queue:
        assert await queue.receive(["default"], 10, SECOND // 5) == []

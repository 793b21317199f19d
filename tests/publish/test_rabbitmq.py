"""Messages for a RabbitMQ exchange, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiormq
import pytest
from aiormq.abc import AbstractChannel

from duetime.model.job import State
from tests.publish.cloudevents import validated
from tests.publish.suite import ONCE, PublishSuite, ReceivedMessage, publishing
from tests.servers.brokers import PASSWORD, USER, RabbitServer
from tests.servers.otlp import OtlpReceiver

KEY, ROUTING_KEY = "new.de", "new"


@pytest.fixture(scope="module")
def server() -> Iterator[RabbitServer]:
    with RabbitServer() as server:
        yield server


class RabbitUnderTest:
    key = KEY
    missing_error = "the exchange 'missing' does not exist"

    def __init__(self, port: int, channel: AbstractChannel, queue: str) -> None:
        self.port = port
        self._channel = channel
        self._queue = queue

    def url(self, port: int, password: str = PASSWORD) -> str:
        return f"amqp://{USER}:{password}@127.0.0.1:{port}/?exchange=orders&routing_key={ROUTING_KEY}"

    def missing_url(self) -> str:
        return self.url(self.port).replace("exchange=orders", "exchange=missing")

    async def received(self, count: int) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        async with asyncio.timeout(60):
            while True:
                message = await self._channel.basic_get(self._queue, no_ack=True)
                if message.body or getattr(message.delivery, "routing_key", None) is not None:
                    properties = message.header.properties
                    assert properties.content_type == "application/cloudevents+json; charset=utf-8"
                    assert properties.delivery_mode == 2
                    key = getattr(message.delivery, "routing_key", None)
                    found.append(ReceivedMessage(message.body, None if key == ROUTING_KEY else key))
                elif len(found) >= count:
                    return found


class TestRabbitmq(PublishSuite):
    @pytest.fixture
    async def broker(self, server: RabbitServer) -> AsyncIterator[RabbitUnderTest]:
        connection = await aiormq.connect(server.url)
        channel = await connection.channel()
        await channel.exchange_declare("orders", exchange_type="topic", durable=True)
        queue = (await channel.queue_declare("orders", durable=True)).queue or ""
        await channel.queue_purge(queue)
        for key in (KEY, ROUTING_KEY):
            await channel.queue_bind(queue, "orders", key)
        yield RabbitUnderTest(server.port, channel, queue)
        await connection.close()

    async def test_message_carries_the_trace_of_its_attempt(self, broker: RabbitUnderTest) -> None:
        with OtlpReceiver() as receiver:
            async with publishing(broker.url(broker.port), traces=receiver.url) as node:
                job = await node.run({"n": 1})
            [message] = await broker.received(1)
            [attempt] = [span for span in receiver.spans if span.kind == "consumer"]
            [publication] = [span for span in receiver.spans if span.name == "send orders"]
        version, trace, span, flags = validated(message.body)["traceparent"].split("-")
        assert (version, trace, span, flags) == ("00", attempt.trace, publication.id, "01")
        assert publication.parent == attempt.id
        assert attempt.attributes["messaging.message.id"] == str(job.id)

    async def test_consumer_is_told_that_a_trace_is_not_exported(self, broker: RabbitUnderTest) -> None:
        with OtlpReceiver() as receiver:
            async with publishing(broker.url(broker.port), traces=receiver.url, sampling=0.0) as node:
                await node.run({"n": 1})
            [message] = await broker.received(1)
            assert validated(message.body)["traceparent"].endswith("-00")
            assert receiver.spans == []

    async def test_message_that_reaches_no_queue_is_a_failure(self, broker: RabbitUnderTest) -> None:
        async with publishing(broker.url(broker.port), ONCE) as node:
            job = await node.run({"n": 1}, {"key": "unbound"})
        reason = "no queue is bound to the exchange for this routing key"
        assert (job.state, job.error) == (State.DEAD, f"destination orders: {reason}")

    async def test_message_that_the_broker_rejects_is_a_failure(
        self, server: RabbitServer, broker: RabbitUnderTest
    ) -> None:
        """A full queue that rejects new messages answers with a nack."""
        connection = await aiormq.connect(server.url)
        channel = await connection.channel()
        arguments: dict[str, Any] = {"x-max-length": 0, "x-overflow": "reject-publish"}
        await channel.queue_declare("full", exclusive=True, arguments=arguments)
        url = broker.url(broker.port).replace(
            f"exchange=orders&routing_key={ROUTING_KEY}", "routing_key=full"
        )
        async with publishing(url, ONCE) as node:
            job = await node.run({"n": 1})
        await connection.close()
        reason = "the broker did not accept the message (nack)"
        assert (job.state, job.error) == (State.DEAD, f"destination orders: {reason}")

    async def test_key_cannot_choose_a_queue_of_the_default_exchange(self, broker: RabbitUnderTest) -> None:
        url = broker.url(broker.port).replace("exchange=orders&", "")
        async with publishing(url) as node:
            job = await node.run({"n": 1}, {"key": "orders"})
        assert (job.state, job.attempt) == (State.DEAD, 1)
        assert job.error == "destination orders: takes no key, because it has no exchange"

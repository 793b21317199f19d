"""Messages for a NATS subject that a JetStream stream stores, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from duetime.model.job import State
from tests.publish.suite import PublishSuite, ReceivedMessage, publishing
from tests.servers.brokers import PASSWORD, USER, NatsServer


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server


class NatsUnderTest:
    key = "eu.de"
    missing_error = "no JetStream stream stores this subject"

    def __init__(self, port: int, stream: JetStreamContext) -> None:
        self.port = port
        self.stream = stream

    def url(self, port: int, password: str = PASSWORD) -> str:
        return f"nats://{USER}:{password}@127.0.0.1:{port}?subject=orders.new"

    def missing_url(self) -> str:
        return self.url(self.port).replace("orders.new", "unknown")

    async def received(self, count: int) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        subscription = await self.stream.pull_subscribe("orders.>", stream="orders")
        async with asyncio.timeout(60):
            while len(found) < count:
                for message in await subscription.fetch(count - len(found), timeout=30):
                    headers = message.headers or {}
                    assert headers["content-type"] == "application/cloudevents+json; charset=utf-8"
                    key = message.subject.removeprefix("orders.new").removeprefix(".")
                    found.append(ReceivedMessage(message.data, key or None))
        stored = (await self.stream.stream_info("orders")).state.messages
        assert stored == len(found)
        return found


class TestNats(PublishSuite):
    @pytest.fixture
    async def broker(self, server: NatsServer) -> AsyncIterator[NatsUnderTest]:
        client = Client()
        await client.connect(server.url)
        stream = client.jetstream()
        with suppress(NotFoundError):
            await stream.delete_stream("orders")
        await stream.add_stream(name="orders", subjects=["orders.>"])
        yield NatsUnderTest(server.port, stream)
        await client.close()

    async def test_key_cannot_contain_wildcards(self, broker: NatsUnderTest) -> None:
        async with publishing(broker.url(broker.port)) as node:
            job = await node.run({"n": 1}, {"key": "a.>"})
        assert (job.state, job.attempt) == (State.DEAD, 1)
        assert job.error == "destination orders: the key must not contain blanks, * or >, or empty parts"

"""Messages for a Redis stream, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis

from duetime.model.job import State
from tests.publish.suite import PublishSuite, ReceivedMessage, publishing
from tests.servers.brokers import PASSWORD, USER, RedisServer


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


class RedisUnderTest:
    key = "c1"
    missing_error = (
        "the broker refused the message: WRONGTYPE Operation against a key holding the wrong kind of value"
    )

    def __init__(self, port: int, client: Any) -> None:
        self.port = port
        self.client = client

    def url(self, port: int, password: str = PASSWORD) -> str:
        return f"redis://{USER}:{password}@127.0.0.1:{port}/0?stream=orders"

    def missing_url(self) -> str:
        """Redis makes streams that do not exist. This one is not a stream."""
        return self.url(self.port).replace("stream=orders", "stream=text")

    async def received(self, count: int) -> list[ReceivedMessage]:
        async with asyncio.timeout(60):
            entries = await self.client.xrange("orders")
            while len(entries) < count:
                after = entries[-1][0] if entries else "0"
                await self.client.xread({"orders": after}, block=1_000)
                entries = await self.client.xrange("orders")
        for _, fields in entries:
            assert fields[b"content-type"] == b"application/cloudevents+json; charset=utf-8"
        return [
            ReceivedMessage(fields[b"event"], fields[b"key"].decode() if b"key" in fields else None)
            for _, fields in entries
        ]


class TestRedis(PublishSuite):
    @pytest.fixture
    async def broker(self, server: RedisServer) -> AsyncIterator[RedisUnderTest]:
        client: Redis = Redis.from_url(server.url)
        await client.flushall()
        await client.set("text", "not a stream")
        yield RedisUnderTest(server.port, client)
        await client.aclose()

    async def test_stream_is_kept_at_its_greatest_length(self, broker: RedisUnderTest) -> None:
        async with publishing(f"{broker.url(broker.port)}&maxlen=100") as node:
            ids = [await node.submit({"n": number}) for number in range(500)]
            assert {(await node.ended(job_id)).state for job_id in ids} == {State.SUCCEEDED}
        assert 100 <= await broker.client.xlen("orders") < 300

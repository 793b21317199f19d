"""The driver for Redis Streams, on a real server."""

from __future__ import annotations

from collections.abc import Collection
from signal import SIGKILL

import pytest
from redis.asyncio import Redis

from duetime.model.instant import SECOND
from duetime.queues import redis as driver
from duetime.testing.queue_conformance import RealBroker, ServerConformance, message, numbers, opened
from tests.queues.server_broker import ServerBroker
from tests.servers.brokers import RedisServer


class RedisBroker(ServerBroker):
    @property
    def client(self) -> Redis:
        return Redis.from_url(self.server.url, protocol=2)

    async def push_foreign(self, queue: str, body: bytes) -> None:
        async with self.client as client:
            await client.xadd(f"{{{self.prefix}}}:6:{queue}", {"message": body})

    async def delete(self, queues: Collection[str]) -> None:
        async with self.client as client:
            await client.flushall()


class TestRedis(ServerConformance):
    @pytest.fixture
    async def broker(self, redis_server: RedisServer, prefix: str) -> RealBroker:
        return RedisBroker(redis_server, prefix)


@pytest.fixture
def broker(redis_server: RedisServer, prefix: str) -> RedisBroker:
    return RedisBroker(redis_server, prefix)


async def test_entries_of_a_dead_worker_go_to_another(
    broker: RedisBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(broker.queue()) as queue:
        await queue.push([message(1)])
        dead = broker.queue()
        assert numbers(await dead.receive(["default"], 1, SECOND)) == [1]
        assert await queue.receive(["default"], 1, 0) == []
        monkeypatch.setattr(driver, "REDELIVERY_TIMEOUT", 0)
        assert numbers(await queue.receive(["default"], 1, 0)) == [1]
        await dead.close()


async def test_acknowledged_entries_need_no_memory(broker: RedisBroker) -> None:
    async with opened(broker.queue()) as queue, broker.client as client:
        await queue.push([message(number) for number in range(1000)])
        for _ in range(10):
            await queue.acknowledge(await queue.receive(["default"], 100, SECOND))
        assert await client.xlen(f"{{{broker.prefix}}}:6:default") == 0
        assert (await client.xpending(f"{{{broker.prefix}}}:6:default", driver.CONSUMERS))["pending"] == 0


async def test_trimmed_entry_of_a_dead_worker_is_skipped(
    broker: RedisBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(broker.queue()) as queue, broker.client as client:
        await queue.push([message(1), message(2)])
        dead = broker.queue()
        assert len(await dead.receive(["default"], 2, SECOND)) == 2
        await client.xtrim(f"{{{broker.prefix}}}:6:default", maxlen=1, approximate=False)
        monkeypatch.setattr(driver, "REDELIVERY_TIMEOUT", 0)
        assert numbers(await queue.receive(["default"], 2, 0)) == [2]
        await dead.close()


async def test_receiver_takes_a_limit_below_the_number_of_its_streams(broker: RedisBroker) -> None:
    """A waiting call may return one entry of each stream: what is over the limit comes with the next call."""
    async with opened(broker.queue()) as queue:
        await queue.push([message(1, priority=9), message(2, priority=5), message(3, priority=0)])
        assert isinstance(queue, driver.RedisQueue)
        await queue._create_groups([queue._stream("default", group) for group in (9, 6, 3)])
        waited = await queue._wait([queue._stream("default", group) for group in (9, 6, 3)], SECOND)
        assert numbers(waited) == [1, 2, 3]


async def test_acknowledged_entries_do_not_return_with_a_restart(prefix: str) -> None:
    """Without its user `default`, Redis 7 loads no transactions from its AOF."""
    with RedisServer(default_user=False) as server:
        broker = RedisBroker(server, prefix)
        async with opened(broker.queue()) as queue:
            await queue.push([message(number) for number in range(10)])
            await queue.acknowledge(await queue.receive(["default"], 9, SECOND))
            server.stop(SIGKILL)
            server.start()
            await queue.open()
            assert sum((await queue.depth(["default"])).values()) == 1
            assert numbers(await queue.receive(["default"], 10, SECOND)) == [9]

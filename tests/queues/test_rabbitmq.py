"""The driver for RabbitMQ, on a real server."""

from __future__ import annotations

from collections.abc import Collection

import aiormq
import pytest

from duetime.queues.address import safe_name
from duetime.testing.queue_conformance import RealBroker, ServerConformance
from tests.queues.server_broker import ServerBroker
from tests.servers.brokers import RabbitServer


class RabbitBroker(ServerBroker):
    async def push_foreign(self, queue: str, body: bytes) -> None:
        async with await aiormq.connect(self.server.url) as connection:
            channel = await connection.channel()
            await channel.basic_publish(body, routing_key=self._name(queue, 6))

    async def delete(self, queues: Collection[str]) -> None:
        async with await aiormq.connect(self.server.url) as connection:
            channel = await connection.channel()
            for queue in queues:
                for group in (9, 6, 3):
                    await channel.queue_delete(self._name(queue, group))

    def _name(self, queue: str, group: int) -> str:
        return f"{self.prefix}.{safe_name(queue, 200)}.{group}"


class TestRabbitMQ(ServerConformance):
    @pytest.fixture
    async def broker(self, rabbit_server: RabbitServer, prefix: str) -> RealBroker:
        return RabbitBroker(rabbit_server, prefix)

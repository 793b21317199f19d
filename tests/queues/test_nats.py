"""The driver for NATS JetStream, on a real server."""

from __future__ import annotations

from collections.abc import Collection

import nats
import pytest

from duetime.queues.address import safe_name
from duetime.testing.queue_conformance import RealBroker, ServerConformance
from tests.queues.server_broker import ServerBroker
from tests.servers.brokers import NatsServer


class NatsBroker(ServerBroker):
    async def push_foreign(self, queue: str, body: bytes) -> None:
        client = await nats.connect(self.server.url)
        await client.jetstream().publish(f"{self.prefix}.{safe_name(queue, 180)}.6", body)
        await client.close()

    async def delete(self, queues: Collection[str]) -> None:
        client = await nats.connect(self.server.url)
        await client.jetstream().delete_stream(self.prefix)
        await client.close()


class TestNats(ServerConformance):
    @pytest.fixture
    async def broker(self, nats_server: NatsServer, prefix: str) -> RealBroker:
        return NatsBroker(nats_server, prefix)

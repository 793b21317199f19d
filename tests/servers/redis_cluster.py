"""A Redis Cluster of masters without replicas, which share the slots."""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from redis import Redis

from tests.servers.brokers import RedisServer
from tests.servers.process import TIMEOUT, ServerFailed, free_port

SLOTS = 16_384


class RedisCluster:
    """`with RedisCluster() as cluster:`, then `cluster.masters` and `cluster.owner(key)`."""

    def __init__(self, masters: int = 3) -> None:
        self._bus_ports = [free_port() for _ in range(masters)]
        self.masters = [
            RedisServer(cluster_enabled="yes", cluster_port=str(port)) for port in self._bus_ports
        ]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for server in self.masters:
            self._stack.enter_context(server)
        clients: list[Any] = [Redis.from_url(server.url) for server in self.masters]
        share = SLOTS // len(clients)
        for number, client in enumerate(clients):
            last = SLOTS - 1 if client is clients[-1] else (number + 1) * share - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, last)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", self.masters[0].port, self._bus_ports[0])
        deadline = time.monotonic() + TIMEOUT
        while not all(b"cluster_state:ok" in _info(client) for client in clients):
            if time.monotonic() > deadline:
                raise ServerFailed("the Redis Cluster does not get ready")
            time.sleep(0.02)
        for client in clients:
            client.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def owner(self, key: str) -> RedisServer:
        """The master of the slot of this key."""
        with Redis.from_url(self.masters[0].url) as client:
            slot = int(client.cluster("KEYSLOT", key))
        return self.masters[min(slot // (SLOTS // len(self.masters)), len(self.masters) - 1)]


def _info(client: Any) -> bytes:
    return bytes(client.execute_command("CLUSTER", "INFO", NEVER_DECODE=True))

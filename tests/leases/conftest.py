"""One etcd server for the whole run; other keys for each test."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from duetime.engine.node.timer import NodeClock
from duetime.leases.etcd import EtcdLeases
from tests.servers.etcd import EtcdServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def etcd_server() -> Iterator[EtcdServer]:
    with EtcdServer() as server:
        yield server


@pytest.fixture
def etcd_url(etcd_server: EtcdServer) -> str:
    return f"{etcd_server.url}?prefix=test-{next(_numbers)}"


@pytest.fixture
async def table(etcd_url: str) -> AsyncIterator[EtcdLeases]:
    made = EtcdLeases(etcd_url, NodeClock())
    yield made
    await made.close()

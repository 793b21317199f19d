"""Brokers for the tests of drivers: one server of each kind for the whole run, other names for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.servers.brokers import KafkaMock, MotoServer, NatsServer, RabbitServer

_numbers = itertools.count(1)


@pytest.fixture
def prefix() -> str:
    return f"test-{next(_numbers)}"


@pytest.fixture(scope="session")
def rabbit_server() -> Iterator[RabbitServer]:
    with RabbitServer() as server:
        yield server


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server


@pytest.fixture(scope="session")
def moto_server() -> Iterator[MotoServer]:
    with MotoServer() as server:
        yield server


@pytest.fixture(scope="session")
def kafka_mock() -> Iterator[KafkaMock]:
    with KafkaMock() as server:
        yield server

"""Fixtures and markers for every test.

A test that asks for the fixture of a database server is marked `server` by itself, and `make check` leaves it
out. A test that fetches the fixture by name (`request.getfixturevalue`) must carry the mark, e.g.
`pytest.param("postgres", marks=pytest.mark.server)`.

What starts a server is imported by its fixture: tests of other stores need no driver of it."""

from __future__ import annotations

import gc
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from duetime.stores.sqlite import schema

if TYPE_CHECKING:
    from tests.servers.brokers import RedisServer
    from tests.servers.mariadb import MariaDbServer
    from tests.servers.pgbouncer import PgBouncer
    from tests.servers.postgres import PostgresServer

SERVERS = {"postgres_server", "mariadb_server", "redis_server"}
_numbers = itertools.count(1)

# Modules are compiled once, not by each of the hundreds of processes that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How long one example takes says something about this machine, not about what is tested.
settings.register_profile("duetime", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("duetime")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = getattr(item, "fixturenames", ())
        if SERVERS.intersection(names):
            item.add_marker(pytest.mark.server)


def pytest_collection() -> None:
    gc.disable()  # collected tests stay


def pytest_collection_finish() -> None:
    """The tests and their modules are not read again in each full collection, and there are fewer small ones:
    both took a tenth of the time of short tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the schema and nothing else in it: copying it is much quicker than making
    another."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    schema.migrate(path)
    return path


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the whole run. It does not sync to disk: tests of durability start their own,
    `PostgresServer(durable=True)`."""
    from tests.servers.postgres import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDbServer]:
    """The same for MariaDB."""
    from tests.servers.mariadb import MariaDbServer

    with MariaDbServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a fresh, empty database."""
    name = f"test_{next(_numbers)}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """A transaction pool in front of `postgres_server`, under the same database names."""
    from tests.servers.pgbouncer import PgBouncer

    with PgBouncer(postgres_server) as pool:
        yield pool


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server for the whole run, other keys for each test."""
    from tests.servers.brokers import RedisServer

    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of a store that does not exist yet."""
    return f"{redis_server.url}?prefix=store-{next(_numbers)}"

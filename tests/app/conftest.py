"""The library on every store. `app_url` names a fresh store; `make_app` makes apps that share it, as
processes share a database."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import duetime as dt
from duetime.stores.memory import MemoryStore

if TYPE_CHECKING:
    from tests.servers.emptying import Emptying
    from tests.servers.mariadb import MariaDbEmptying, MariaDbServer
    from tests.servers.postgres import PostgresServer

MakeApp = Callable[..., dt.App]


SERVERS = {"redis": "redis_url", "postgres": "migrated_url", "mariadb": "mariadb_url"}
STORES = [
    "memory",
    "sqlite",
    pytest.param("redis", marks=pytest.mark.server),
    pytest.param("postgres", marks=pytest.mark.server),
]
# MariaDB has the verbs of SQLite (stores/sql) and passes the conformance suite. These modules show that nodes
# work on it.
WITH_MARIADB = {
    "test_alerts",
    "test_failures",
    "test_life",
    "test_limits",
    "test_running",
    "test_schedule_life",
    "test_unique",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "app_url" in metafunc.fixturenames and not hasattr(metafunc.module, "app_url"):  # it has its own
        mariadb = pytest.param("mariadb", marks=pytest.mark.server)
        more = [mariadb] if metafunc.module.__name__.rpartition(".")[2] in WITH_MARIADB else []
        metafunc.parametrize("app_url", [*STORES, *more], indirect=True)


@pytest.fixture
def app_url(request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path) -> str:
    match request.param:
        case "memory":
            return "memory://"
        case "sqlite":
            return f"sqlite:///{shutil.copyfile(sqlite_template, tmp_path / 'duetime.db')}"
        case server:
            url: str = request.getfixturevalue(SERVERS[server])
            return url


@pytest.fixture(scope="session")
def migrated(postgres_server: PostgresServer) -> str:
    """The URL of one database for all tests of the library."""
    url = postgres_server.create_database("app")
    asyncio.run(dt.App(url).migrate())
    return url


@pytest.fixture(scope="session")
def emptying(migrated: str) -> Iterator[Emptying]:
    from tests.servers.emptying import Emptying

    emptying = Emptying(migrated)
    yield emptying
    emptying.close()


@pytest.fixture
def migrated_url(migrated: str, emptying: Emptying) -> str:
    emptying.empty()
    return migrated


@pytest.fixture(scope="session")
def mariadb_emptying(mariadb_server: MariaDbServer) -> Iterator[MariaDbEmptying]:
    from tests.servers.mariadb import MariaDbEmptying

    asyncio.run(dt.App(mariadb_server.create_database("app")).migrate())
    emptying = MariaDbEmptying(mariadb_server, "app")
    yield emptying
    emptying.close()


@pytest.fixture
def mariadb_url(mariadb_server: MariaDbServer, mariadb_emptying: MariaDbEmptying) -> str:
    mariadb_emptying.empty()
    return mariadb_server.database_url("app")


@pytest.fixture
async def make_app(app_url: str) -> AsyncIterator[MakeApp]:
    """Apps on one store. Those still open at the end are closed."""
    place = MemoryStore() if app_url == "memory://" else app_url
    await dt.App(place).migrate()
    made: list[dt.App] = []

    def make(**options: Any) -> dt.App:
        made.append(dt.App(place, **options))
        return made[-1]

    yield make
    for app in made:
        app.sync.close()
        while app.is_open:
            await app.close()


@pytest.fixture
def app(make_app: MakeApp) -> dt.App:
    return make_app()


@pytest.fixture
def memory_app() -> dt.App:
    """For what happens in the worker alone, whatever the store."""
    return dt.App("memory://")


@pytest.fixture
async def client() -> AsyncIterator[dt.App]:
    """An open app in memory, for what is refused before any store sees it."""
    app = dt.App("memory://")
    await app.open()
    yield app
    await app.close()

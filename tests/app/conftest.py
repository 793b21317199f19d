"""The library on every store. `app_url` names a fresh store; `make_app` makes apps that share it, as
processes share a database."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.stores.memory import MemoryStore
from tests.servers.emptying import Emptying
from tests.servers.postgres import PostgresServer

MakeApp = Callable[..., dt.App]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def app_url(request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path) -> str:
    match request.param:
        case "memory":
            return "memory://"
        case "sqlite":
            return f"sqlite:///{shutil.copyfile(sqlite_template, tmp_path / 'duetime.db')}"
        case _:
            url: str = request.getfixturevalue("migrated_url")
            return url


@pytest.fixture(scope="session")
def migrated(postgres_server: PostgresServer) -> str:
    """The URL of one database for all tests of the library."""
    url = postgres_server.create_database("app")
    asyncio.run(dt.App(url).migrate())
    return url


@pytest.fixture(scope="session")
def emptying(migrated: str) -> Iterator[Emptying]:
    emptying = Emptying(migrated)
    yield emptying
    emptying.close()


@pytest.fixture
def migrated_url(migrated: str, emptying: Emptying) -> str:
    emptying.empty()
    return migrated


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

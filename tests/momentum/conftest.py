"""Fixtures for all tests of Momentum: a database of each kind, and a Duetime app on it."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import duetime as dt
from momentum.database import Database
from tests.servers.postgres import PostgresServer

TEMPLATE = "momentum_template"
_numbers = itertools.count(1)


async def migrate(url: str) -> None:
    app, database = dt.App(url), Database.of(url)
    await app.migrate()
    await database.migrate()
    await app.store.close()
    await database.close()


@pytest.fixture(scope="session")
def momentum_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all tables and nothing in them: copying it is quicker than making another."""
    path = tmp_path_factory.mktemp("momentum") / "template.db"
    asyncio.run(migrate(f"sqlite:///{path}"))
    return path


@pytest.fixture(scope="session")
def momentum_postgres(postgres_server: PostgresServer) -> PostgresServer:
    """A server with a database that has all tables."""
    asyncio.run(migrate(postgres_server.create_database(TEMPLATE)))
    return postgres_server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database with all tables: of SQLite, then of PostgreSQL."""
    url: str = request.getfixturevalue(f"{request.param}_database_url")
    return url


@pytest.fixture
def sqlite_database_url(tmp_path: Path, momentum_sqlite: Path) -> str:
    shutil.copy(momentum_sqlite, tmp_path / "momentum.db")
    return f"sqlite:///{tmp_path / 'momentum.db'}"


@pytest.fixture
def postgres_database_url(momentum_postgres: PostgresServer) -> Iterator[str]:
    name = f"momentum_{next(_numbers)}"
    yield momentum_postgres.create_database(name, TEMPLATE)
    momentum_postgres.drop_database(name)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database.of(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[dt.App]:
    """Duetime on the same database, without a node."""
    app = dt.App(database_url)
    await app.open()
    yield app
    await app.close()

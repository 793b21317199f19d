"""Fleets on durable stores."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet
from tests.faults.tool_fleet import ToolFleet
from tests.servers.postgres import PostgresServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def durable_server() -> Iterator[PostgresServer]:
    """Syncs to disk, because these tests crash it."""
    with PostgresServer(durable=True) as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/fleet.db"
    server: PostgresServer = request.getfixturevalue("durable_server")
    return server.create_database(f"faults_{next(_numbers)}")


@pytest.fixture
async def fleet(store_url: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet(store_url, tmp_path) as made:
        yield made


@pytest.fixture
async def tools(store_url: str, tmp_path: Path) -> AsyncIterator[ToolFleet]:
    async with ToolFleet(store_url, tmp_path) as made:
        yield made

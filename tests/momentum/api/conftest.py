from __future__ import annotations

import itertools
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.momentum.api.scene import Client, Running, running, settings_for
from tests.momentum.platforms.fixtures import SandboxProcess, sandbox, sandbox_process
from tests.servers.postgres import PostgresServer

__all__ = ["sandbox", "sandbox_process"]
_numbers = itertools.count(1)


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def service_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[tuple[str, str, Path]]:
    """The kind, the URL and a folder of a database for many tests."""
    folder = tmp_path_factory.mktemp("service")
    if request.param == "sqlite":
        shutil.copy(sqlite_template, folder / "momentum.db")
        yield "sqlite", f"sqlite:///{folder / 'momentum.db'}", folder
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = f"momentum_api_{next(_numbers)}"
    yield "postgres", server.create_database(name), folder
    server.drop_database(name)


@pytest.fixture(scope="session")
async def service(
    service_database: tuple[str, str, Path], sandbox_process: SandboxProcess
) -> AsyncIterator[Running]:
    """With API, planner and worker."""
    kind, url, folder = service_database
    async with running(settings_for(url, folder, sandbox_process.url)) as started:
        started.database_kind, started.folder = kind, folder
        yield started


@pytest.fixture
async def client(service: Running) -> AsyncIterator[Client]:
    """A caller with a tenant of its own."""
    async with service.client(f"tenant{next(_numbers)}") as client:
        yield client


@pytest.fixture
async def other_client(service: Running) -> AsyncIterator[Client]:
    async with service.client(f"other{next(_numbers)}") as client:
        yield client

"""/healthz and /readyz tell the truth (J9): with a PostgreSQL server that is really stopped, and a node that really lost its lease."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2 as httpx
import psycopg
import pytest

import duetime as dt
from duetime.api.server import address_of, listen, serving
from duetime.api.service import build
from duetime.app import health
from duetime.config import Settings
from tests.api.conftest import Api, client_of, refused
from tests.servers.postgres import PostgresServer

PATIENCE = 30.0


@asynccontextmanager
async def service_with_node(url: str, **options: str) -> AsyncIterator[httpx.AsyncClient]:
    app = dt.App(url)
    await app.migrate()
    async with app.running(**options), client_of(build(app, Settings())) as client:
        yield client


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await done():
            await asyncio.sleep(0.05)


async def test_a_process_without_a_node_is_ready_when_its_store_is(api: Api) -> None:
    assert (await api.client.get("/readyz")).json()["status"] == "ready"


@pytest.mark.postgres
async def test_a_stopped_server_makes_it_unready_and_a_started_one_ready_again() -> None:
    with PostgresServer() as server:
        async with service_with_node(server.create_database("ready")) as client:
            assert (await client.get("/readyz")).json()["status"] == "ready"
            server.stop()
            began = asyncio.get_running_loop().time()
            refused(await client.get("/readyz"), 503, "not_ready")
            assert asyncio.get_running_loop().time() - began < 10, "long before the lease of the node or a timeout of the driver"
            assert (await client.get("/healthz")).json()["status"] == "ok"
            server.start()

            async def ready() -> bool:
                return (await client.get("/readyz")).status_code == 200

            await until(ready)


def tell(number: signal.Signals, *pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # some of its processes come and go
            os.kill(pid, number)


@pytest.mark.postgres
async def test_a_server_that_hangs_is_told_within_a_second_or_so() -> None:
    """Its connections look open, and nothing comes back."""
    with PostgresServer() as server:
        async with service_with_node(server.create_database("ready"), lease="60s") as client:
            assert (await client.get("/readyz")).status_code == 200
            children = [int(pid) for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]
            tell(signal.SIGSTOP, server.pid, *children)
            try:
                began = asyncio.get_running_loop().time()
                problem = refused(await client.get("/readyz"), 503, "not_ready")
                assert asyncio.get_running_loop().time() - began < 10, "long before the lease of the node or a timeout of the driver"
                assert "store does not answer" in problem["detail"]
            finally:
                tell(signal.SIGCONT, server.pid, *children)


@pytest.mark.postgres
async def test_a_schema_that_a_newer_version_made_is_told(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SCHEMA_EVERY", 0)
    async with service_with_node(postgres_url) as client:
        assert (await client.get("/readyz")).status_code == 200
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("INSERT INTO duetime.schema_version VALUES (999, now())")

        async def told() -> bool:
            answer = await client.get("/readyz")
            return answer.status_code == 503 and "upgrade Duetime" in answer.json()["detail"]

        await until(told)
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("DELETE FROM duetime.schema_version WHERE version = 999")


async def test_a_node_that_lost_its_lease_is_not_ready_until_it_has_another(tmp_path: Path) -> None:
    app = dt.App(f"sqlite:///{tmp_path / 'd.db'}")
    async with app.running(lease="1s") as node, client_of(build(app, Settings())) as client:
        assert (await client.get("/readyz")).status_code == 200
        first = node.id
        assert first is not None
        heart = node.heart
        assert heart is not None
        heart.trusted_until = 0  # as after a beat that did not come through in time
        problem = refused(await client.get("/readyz"), 503, "not_ready")
        assert "lease" in problem["detail"]
        await app.store.leave(first)  # declared dead: it joins again

        async def ready() -> bool:
            return (await client.get("/readyz")).status_code == 200 and node.id != first

        await until(ready)


async def test_a_node_that_was_told_to_stop_is_not_ready() -> None:
    app = dt.App("memory://")
    hold, began = asyncio.Event(), asyncio.Event()

    @app.task("slow")
    async def slow() -> None:
        began.set()
        await hold.wait()

    async with app.running() as node, client_of(build(app, Settings())) as client:
        await app.submit("slow")
        await began.wait()
        node.stop()
        assert "stopping" in refused(await client.get("/readyz"), 503, "not_ready")["detail"]
        assert (await client.get("/healthz")).status_code == 200
        hold.set()


async def test_a_service_that_stops_says_so_while_requests_under_way_finish() -> None:
    app = dt.App("memory://")
    await app.open()
    service = build(app, Settings())
    listener = listen("127.0.0.1", 0)
    async with serving(service, listener), httpx.AsyncClient(base_url=address_of(listener), trust_env=False) as client:
        assert (await client.get("/readyz")).status_code == 200
        service.stop()  # type: ignore[attr-defined]  # a Service has it
        assert "stopping" in refused(await client.get("/readyz"), 503, "not_ready")["detail"]
    listener.close()
    await app.close()

"""/healthz and /readyz tell the truth (J9): with a PostgreSQL server that is really stopped, and a node that
really lost its lease."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2 as httpx
import psycopg
import pytest

import duetime as dt
from duetime.api import health as routes
from duetime.api import loop_lag
from duetime.api.loop_lag import LoopLag
from duetime.api.server import address_of, listen, serving
from duetime.api.service import build
from duetime.app import health
from duetime.app.broker import NO_BROKER
from duetime.clock import wall_micros
from duetime.config import Settings
from duetime.model.instant import SECOND, Micros
from duetime.queues.memory import MemoryBroker, MemoryQueue
from duetime.stores.memory.store import MemoryStore
from tests.api.conftest import Api, client_of, refused
from tests.servers.postgres import PostgresServer

PATIENCE = 60.0


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


async def is_ready(client: httpx.AsyncClient) -> None:
    """Sooner or later: a machine that stands still for a moment makes anybody unready."""

    async def answered() -> bool:
        return (await client.get("/readyz")).status_code == 200

    await until(answered)


async def is_unready(client: httpx.AsyncClient, because: str) -> httpx.Response:
    """Sooner or later for this reason; for another one meanwhile, or for none."""
    answers: list[httpx.Response] = []

    async def told() -> bool:
        answers.append(await client.get("/readyz"))
        return answers[-1].status_code == 503 and because in answers[-1].json()["detail"]

    await until(told)
    refused(answers[-1], 503, "not_ready")
    return answers[-1]


async def test_health_checks_answer_head(api: Api) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await api.client.head(path)).status_code == 200
        assert refused(await api.client.post(path), 405, "method_not_allowed")["detail"].endswith("GET, HEAD")


async def test_a_process_without_a_node_is_ready_when_its_store_is(api: Api) -> None:
    await is_ready(api.client)
    assert (await api.client.get("/readyz")).json()["status"] == "ready"


@pytest.mark.server
async def test_a_stopped_server_makes_it_unready_and_a_started_one_ready_again() -> None:
    with PostgresServer() as server:
        async with service_with_node(server.create_database("ready"), lease="1h") as client:
            await is_ready(client)
            server.stop()
            async with asyncio.timeout(PATIENCE):  # long before the lease of the node ends
                refused(await client.get("/readyz"), 503, "not_ready")
            assert (await client.get("/healthz")).json()["status"] == "ok"
            server.start()
            await is_ready(client)


def tell(number: signal.Signals, *pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # some of its processes come and go
            os.kill(pid, number)


@pytest.mark.server
async def test_hanging_database_is_reported() -> None:
    """Its connections look open, and nothing comes back."""
    with PostgresServer() as server:
        async with service_with_node(server.create_database("ready"), lease="1h") as client:
            await is_ready(client)
            children = [
                int(pid) for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            ]
            tell(signal.SIGSTOP, server.pid, *children)
            try:
                async with asyncio.timeout(PATIENCE):  # long before the lease of the node ends
                    problem = refused(await client.get("/readyz"), 503, "not_ready")
                assert "store does not respond" in problem["detail"]
            finally:
                tell(signal.SIGCONT, server.pid, *children)


async def test_process_without_its_broker_is_ready_and_says_so() -> None:
    broker = MemoryBroker()
    app = dt.App("memory://", queue=lambda: MemoryQueue(broker))
    async with app.running(), client_of(build(app, Settings())) as client:

        async def remark_is(expected: str | None) -> None:
            async def told() -> bool:
                answer = await client.get("/readyz")
                return answer.status_code == 200 and answer.json()["remark"] == expected

            await until(told)

        await remark_is(None)
        broker.go_down()
        await remark_is(NO_BROKER)
        broker.come_back()
        await remark_is(None)


@pytest.mark.server
async def test_newer_schema_is_reported(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SCHEMA_CHECK_INTERVAL", 0)
    async with service_with_node(postgres_url) as client:
        await is_ready(client)
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("INSERT INTO duetime.schema_version VALUES (999, now())")
        await is_unready(client, "upgrade Duetime")
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("DELETE FROM duetime.schema_version WHERE version = 999")


async def test_a_node_that_lost_its_lease_is_not_ready_until_it_has_another(tmp_path: Path) -> None:
    app = dt.App(f"sqlite:///{tmp_path / 'd.db'}")
    async with app.running(lease="5s") as node, client_of(build(app, Settings())) as client:
        await is_ready(client)

        async def told() -> bool:
            if node.heartbeat is not None:
                node.heartbeat._trusted_until = (
                    0  # as after a beat that did not come through in time; the next one is in time again
                )
            answer = await client.get("/readyz")
            return answer.status_code == 503 and "lease" in answer.json()["detail"]

        await until(told)
        first = node.id
        assert first is not None
        await app.store.leave(first)  # declared dead: it joins again

        async def ready() -> bool:
            return (await client.get("/readyz")).status_code == 200 and node.id != first

        await until(ready)


async def test_stopping_node_is_not_ready() -> None:
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


async def test_stopping_service_is_not_ready_and_finishes_requests() -> None:
    app = dt.App("memory://")
    await app.open()
    service = build(app, Settings())
    listener = listen("127.0.0.1", 0)
    async with (
        serving(service, listener),
        httpx.AsyncClient(base_url=address_of(listener), trust_env=False, timeout=60) as client,
    ):
        await is_ready(client)
        service.stop()
        assert "stopping" in refused(await client.get("/readyz"), 503, "not_ready")["detail"]
    listener.close()
    await app.close()


# -- the clock ---------------------------------------------------------------------------------------------
async def test_clock_skew_is_reported_until_it_is_corrected() -> None:
    """The node goes on by the store's clock, but what is said here about instants means something else."""
    store_ahead: list[Micros] = [0]
    app = dt.App(MemoryStore(lambda: wall_micros() + store_ahead[0]))
    async with app.running(), client_of(build(app, Settings())) as client:
        for ahead, told in (
            (0, None),
            (4 * SECOND, None),
            (-4 * SECOND, None),
            (6 * SECOND, "this machine's clock is 6.0 s behind the store's"),
            (-3_600 * SECOND, "this machine's clock is 3600.0 s ahead of the store's"),
            (0, None),
        ):
            store_ahead[0] = ahead
            if told is None:
                await is_ready(client)
            else:
                assert (await is_unready(client, told)).headers["retry-after"]
            assert (await client.get("/healthz")).json()["status"] == "ok"


@pytest.mark.server
async def test_clock_skew_to_the_database_is_reported(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine's clock steps while the node runs, the server's does not."""
    async with service_with_node(postgres_url) as client:
        await is_ready(client)
        monkeypatch.setattr(routes, "wall_micros", lambda: wall_micros() + 30 * SECOND)
        await is_unready(client, "ahead of the store's")
        monkeypatch.undo()
        await is_ready(client)


async def test_slow_answer_is_not_clock_skew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it was given between question and answer, the store may have been right."""
    app, moments = (
        dt.App(MemoryStore(lambda: 100 * SECOND)),
        iter((90 * SECOND, 110 * SECOND, 106 * SECOND, 120 * SECOND)),
    )
    await app.open()
    monkeypatch.setattr(routes, "wall_micros", lambda: next(moments))
    assert await routes._skew(app.store) == 0
    assert await routes._skew(app.store) == 6 * SECOND
    await app.close()


async def test_store_that_stops_answering_is_reported(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(_: object) -> Micros:
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr(routes, "STORE_TIMEOUT", 0.01)
    monkeypatch.setattr(routes, "_skew", hang)
    assert "store does not respond" in refused(await api.client.get("/readyz"), 503, "not_ready")["detail"]


# -- the event loop ----------------------------------------------------------------------------------------
async def test_blocked_event_loop_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that really blocks it; a client that was connected before asks, and is served immediately
    afterwards."""
    app = dt.App("memory://")

    @app.task("blocking")
    async def blocking() -> None:
        time.sleep(2.5)

    listener = listen("127.0.0.1", 0)
    async with (
        app.running(),
        serving(build(app, Settings()), listener),
        httpx.AsyncClient(base_url=address_of(listener), trust_env=False, timeout=60) as client,
    ):
        await is_ready(client)
        monkeypatch.setattr(loop_lag, "RECOVERY", 3_600 * SECOND)  # however long this machine takes to ask
        await (await app.submit("blocking")).wait()
        assert (
            "the event loop stood still for"
            in refused(await client.get("/readyz"), 503, "not_ready")["detail"]
        )
        assert (await client.get("/healthz")).json()["status"] == "ok"
        monkeypatch.setattr(loop_lag, "RECOVERY", 0)  # as if those seconds had passed
        await is_ready(client)
    listener.close()


def test_loop_lag_is_reported_for_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(loop_lag, "monotonic_micros", lambda: int(now * SECOND))
    lag = LoopLag()
    now = 100
    assert lag.trouble() is None, "no beat yet"
    lag.beat()
    now = 102
    lag.beat()
    assert lag.trouble() is None, "two seconds are tolerated"
    now = 104.2
    assert "2.1 s" in str(lag.trouble()), "before the beat that is overdue"
    now = 105
    lag.beat()
    for tenth in range(1_051, 1_150):
        now = tenth / 10
        lag.beat()
        assert "2.9 s" in str(lag.trouble())
    now = 115.2
    lag.beat()
    assert lag.trouble() is None

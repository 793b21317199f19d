"""A store that is killed in the middle of an attempt: the attempt is repeated, and is no failure of the
task."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

import duetime as dt
from duetime.engine.run import checkpoints
from tests.servers.brokers import RedisServer
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.server]

Use = Callable[[dt.Context], Awaitable[Any]]
SERVERS = {"postgres": PostgresServer, "mariadb": MariaDbServer, "redis": RedisServer}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    with SERVERS[request.param](durable=True) as server:
        yield server


def url_of(server: Any) -> str:
    return str(server.url) if isinstance(server, RedisServer) else server.create_database("dies")


def kill(server: Any) -> None:
    server._process.end(signal.SIGKILL)


@pytest.mark.parametrize("server", ["postgres", "mariadb"], indirect=True)
async def test_a_server_killed_during_a_statement_is_no_failure(server: Any) -> None:
    app = dt.App(url_of(server))
    begun, revived = asyncio.Semaphore(0), asyncio.Event()
    sleep = "SELECT sleep(600)" if isinstance(server, MariaDbServer) else "SELECT pg_sleep(600)"

    @app.task("within", retry=dt.Retry(max_attempts=1))
    async def within(ctx: dt.Context) -> None:
        if ctx.attempt == 1:
            await ctx.connection.execute("SELECT 1")
            begun.release()
            await ctx.connection.execute(sleep)

    @app.task("between", retry=dt.Retry(max_attempts=1))
    async def between(ctx: dt.Context) -> None:
        await ctx.connection.execute("SELECT 1")
        if ctx.attempt == 1:
            begun.release()
            await revived.wait()
            await ctx.connection.execute("SELECT 1")

    await app.migrate()
    async with app.running(lease="30s"):
        jobs = [await task.submit() for task in (within, within, between)]
        for _ in jobs:
            await begun.acquire()
        await asyncio.to_thread(kill, server)
        await asyncio.to_thread(server.start)
        revived.set()
        for job in jobs:
            await job.wait(timeout="60s")
        assert [(job.state, job.attempt, job.failures) for job in jobs] == [("succeeded", 2, 0)] * 3
        assert [one.ending for job in jobs for one in await job.attempts()] == ["lost"] * 3


@pytest.mark.parametrize("server", ["postgres", "redis"], indirect=True)
async def test_a_store_that_stays_away_from_a_call_of_the_context_is_no_failure(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "RETRY_TIMEOUT", 0)
    app = dt.App(url_of(server))
    begun, killed, failed = asyncio.Semaphore(0), asyncio.Event(), asyncio.Semaphore(0)

    @app.task("call", retry=dt.Retry(max_attempts=1))
    async def call(ctx: dt.Context, name: str) -> None:
        begun.release()
        await killed.wait()
        try:
            await getattr(ctx, name)("here")
        except dt.StoreUnavailable:
            failed.release()
            raise

    await app.migrate()
    async with app.running(lease="30s"):
        jobs = [await call.submit(name=name) for name in ("checkpoint", "once")]
        for _ in jobs:
            await begun.acquire()
        await asyncio.to_thread(kill, server)
        killed.set()
        for _ in jobs:
            await failed.acquire()
        await asyncio.to_thread(server.start)
        for job in jobs:
            await job.wait(timeout="60s")
        assert [(job.state, job.attempt, job.failures) for job in jobs] == [("succeeded", 2, 0)] * 2
        assert [one.ending for job in jobs for one in await job.attempts()] == ["released"] * 2

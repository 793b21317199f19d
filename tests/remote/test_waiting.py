"""Waiting for a job over HTTP: the service holds the request until the job is final; otherwise the client
polls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.api import long_poll
from duetime.api import server as api_server
from duetime.api.server import address_of, listen, serving
from duetime.api.service import build
from duetime.api.state import ServiceState
from duetime.config import Settings
from duetime.errors import NotOpen, WaitTimeout
from duetime.remote import request as requests
from duetime.remote.calls import jobs as calls
from tests.api.conftest import RING
from tests.remote.conftest import KINDS, Served, caller
from tests.remote.scripted import CUT, HANG, answer, problem, scripted
from tests.remote.test_failures import ID, JOB

READ = ("/api/v1/jobs/{job_id}", "GET", "2xx")
LONG, LESS = 60_000_000, 45.0  # microseconds that the service may hold a request at most; seconds
RUNNING, DONE = answer(200, {**JOB, "state": "running"}), answer(200, {**JOB, "state": "succeeded"})


class Process:
    """One of several processes that answer the API: an app, a service and an address of its own."""

    def __init__(self, store: str) -> None:
        self.app = dt.App(store)
        self.service: Any = None
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Process]:
        await self.app.open()
        self.service = build(self.app, Settings(), ring=RING)
        listener = listen("127.0.0.1", 0)
        try:
            async with serving(self.service, listener):
                self.url = address_of(listener)
                yield self
        finally:
            await self.app.close()

    @property
    def state(self) -> ServiceState:
        state: ServiceState = self.service.state.service
        return state

    @property
    def reads(self) -> int:
        return self.state.meter.requests[READ]


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.005)


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url: str = (
        f"sqlite:///{tmp_path}/duetime.db"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_url")
    )
    await dt.App(url).migrate()
    return url


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FIRST_RETRY_DELAY", 0.001)
    monkeypatch.setattr(calls, "FIRST_POLL_INTERVAL", 0.005)


@pytest.mark.parametrize("kind", KINDS)
async def test_one_request_waits_for_a_job_that_another_process_runs(kind: str, store: str) -> None:
    worker, front = dt.App(store), Process(store)

    @worker.task("double")
    async def double(n: int) -> int:
        return 2 * n

    async with front.serving():
        client = caller(kind, front.url, timeout="60s")
        job = await client.submit("double", {"n": 21})
        waiting = asyncio.ensure_future(client.wait_for(job.id, "60s"))
        await until(lambda: len(front.state.long_polls) == 1)
        async with worker.running():
            assert (await waiting).result == 42
        assert front.reads == 1
        assert len(front.state.long_polls) == 0
        await client.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_wait_does_not_delay_the_shutdown_of_the_service(
    kind: str, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_HOLD", LONG)
    monkeypatch.setattr(api_server, "SHUTDOWN_TIMEOUT", 3_600)
    first, second = Process(store), Process(store)
    loop = asyncio.get_running_loop()
    async with second.serving():
        async with first.serving():
            client = caller(kind, first.url, timeout="60s", retries=0)
            job = await client.submit("unserved", delay="1h")
            waiting = asyncio.ensure_future(client.wait_for(job.id, "1h"))
            await until(lambda: len(first.state.long_polls) == 1)
            began = loop.time()
        with pytest.raises(dt.ServiceUnreachable):
            await waiting
        assert loop.time() - began < LESS
        other = caller(kind, second.url)
        waiting = asyncio.ensure_future(other.wait_for(job.id, "60s"))
        await until(lambda: len(second.state.long_polls) == 1)
        await other.cancel_job(job.id)
        assert (await waiting).state is dt.State.CANCELLED
        await other.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_closing_the_client_ends_its_waits(kind: str) -> None:
    async with Process("memory://").serving() as front:
        client = caller(kind, front.url)
        job = await client.submit("unserved", delay="1h")
        waiting = asyncio.ensure_future(client.wait_for(job.id))
        await until(lambda: len(front.state.long_polls) == 1)
        await client.close()
        with pytest.raises(NotOpen):
            await asyncio.wait_for(waiting, LESS)
        await until(lambda: len(front.state.long_polls) == 0)


async def test_held_request_ends_when_its_sender_disconnects() -> None:
    async with Process("memory://").serving() as front:
        client = dt.AsyncClient(front.url)
        job = await client.submit("unserved", delay="1h")
        waiting = asyncio.ensure_future(client.wait_for(job.id))
        await until(lambda: len(front.state.long_polls) == 1)
        waiting.cancel()
        await until(lambda: len(front.state.long_polls) == 0)
        await client.close()


async def test_waits_leave_connections_for_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_HOLD", LONG)
    async with Process("memory://").serving() as front:
        client = dt.AsyncClient(front.url, connections=4)
        jobs = [(await client.submit("unserved", delay="1h")).id for _ in range(8)]
        waiting = [asyncio.ensure_future(client.wait_for(job)) for job in jobs]
        await until(lambda: front.reads >= 8 and len(front.state.long_polls) == 2)
        async with asyncio.timeout(LESS):
            for job in jobs:
                await client.cancel_job(job)
            assert {(await one).state for one in waiting} == {dt.State.CANCELLED}
        await client.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", ["MAX_PER_PROCESS", "MAX_PER_KEY"])
async def test_client_polls_when_the_service_holds_too_many_requests(
    kind: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll, limit, 0)
    async with Process("memory://").serving() as front:
        client = caller(kind, front.url)
        job = await client.submit("unserved", delay="1h")
        waiting = asyncio.ensure_future(client.wait_for(job.id, "60s"))
        await until(lambda: front.reads >= 3)
        assert len(front.state.long_polls) == 0
        await client.cancel_job(job.id)
        assert (await waiting).state is dt.State.CANCELLED
        await client.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "trouble",
    [CUT, answer(504, b"<html>gateway timeout", "text/html"), problem(502, "bad_gateway"), answer(408)],
)
async def test_wait_survives_a_proxy_with_a_short_timeout(kind: str, trouble: bytes) -> None:
    """Each time the client looks at once, and asks for a shorter wait; in the end for none."""
    async with scripted(*[trouble, RUNNING] * 6, RUNNING, DONE) as script:
        client = caller(kind, script.url, timeout="60s")
        assert (await client.wait_for(ID, "1h")).state is dt.State.SUCCEEDED
        asked = [seen.path.partition("?wait=")[2] for seen in script.seen]
        assert asked == [
            "25s",
            "",
            "12s500ms",
            "",
            "6s250ms",
            "",
            "3s125ms",
            "",
            "1s562ms500us",
            "",
            "781ms250us",
            "",
            "",
            "",
        ]
        await client.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_wait_without_a_reply_is_repeated(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_HOLD", 200_000)
    async with scripted(HANG, DONE) as script:
        client = caller(kind, script.url, timeout="1s")
        began = asyncio.get_running_loop().time()
        assert (await client.wait_for(ID)).state is dt.State.SUCCEEDED
        assert asyncio.get_running_loop().time() - began >= 1.2
        await client.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_wait_raises_errors_that_waiting_cannot_solve(kind: str) -> None:
    async with scripted(problem(401, "key_revoked")) as script:
        with pytest.raises(dt.AccessDenied):
            await caller(kind, script.url).wait_for(ID)
        assert len(script.seen) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_wait_ends_at_its_timeout(kind: str, served: Served) -> None:
    client = caller(kind, served.url)
    job = await client.submit("unserved", delay="1h")
    loop = asyncio.get_running_loop()
    for timeout, least in (("0s", 0.0), ("300ms", 0.3)):
        began = loop.time()
        with pytest.raises(WaitTimeout, match=f"is still pending after {timeout}"):
            await client.wait_for(job.id, timeout)
        assert least <= loop.time() - began < least + 20
    await client.close()

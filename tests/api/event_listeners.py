"""Listeners of the event stream, over real connections."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2 as httpx

import duetime as dt
from duetime.api.server import address_of, listen, serving
from duetime.api.service import build
from duetime.api.state import ServiceState
from duetime.config import Settings

WAIT_TIMEOUT = 120.0


class ReceivedEvent(NamedTuple):
    id: int
    kind: str
    data: dict[str, Any]


class Listener:
    """One event stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()

    async def next(self) -> ReceivedEvent:
        found: dict[str, str] = {}
        async with asyncio.timeout(WAIT_TIMEOUT):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if line:
                    found[name] = value
                elif "data" in found:
                    return ReceivedEvent(int(found["id"]), found["event"], json.loads(found["data"]))
                else:
                    found.clear()
        raise EOFError

    async def until(self, kind: str, action: str) -> ReceivedEvent:
        """The first event of this kind; skips others."""
        while True:
            event = await self.next()
            if (event.kind, event.data.get("action")) == (kind, action):
                return event

    async def all_of(self, job: dt.JobHandle, actions: Iterable[str]) -> list[ReceivedEvent]:
        """What is event of a job, in whatever order: that it started may be known before the answer to who
        submitted it is in."""
        missing, found = Counter(list(actions)), []
        while missing:
            event = await self.next()
            if event.data.get("id") == str(job.id):
                found.append(event)
                missing -= Counter([event.data["action"]])
        return found

    async def rest(self) -> list[ReceivedEvent]:
        """Everything up to the end."""
        found = []
        try:
            while True:
                found.append(await self.next())
        except EOFError:
            return found


class ServedApp:
    """A service on a port of its own."""

    def __init__(self, app: dt.App, address: str, state: ServiceState) -> None:
        self.app = app
        self.address = address
        self.state = state

    @asynccontextmanager
    async def listening(self, query: str = "", **headers: str) -> AsyncIterator[Listener]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        async with (
            httpx.AsyncClient(base_url=self.address, timeout=WAIT_TIMEOUT, trust_env=False) as client,
            client.stream("GET", f"/api/v1/events{query}", headers=given) as answer,
        ):
            if answer.status_code != 200:
                await answer.aread()
            yield Listener(answer)


@asynccontextmanager
async def service(app: dt.App, **options: Any) -> AsyncIterator[ServedApp]:
    await app.open()
    listener = listen("127.0.0.1", 0)
    try:
        made = build(app, Settings(), **options)
        async with serving(made, listener):
            yield ServedApp(app, address_of(listener), made.state.service)
    finally:
        listener.close()
        await app.close()


def worker(store: Any) -> dt.App:
    app = dt.App(store)

    @app.task("greet")
    async def greet() -> None: ...

    @app.task("fail", retry=dt.Retry(max_attempts=2, first_delay="10ms"))
    async def fail() -> None:
        raise ValueError("no")

    return app


async def until(done: Callable[[], bool] | Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WAIT_TIMEOUT):
        while not (answer if isinstance(answer := done(), bool) else await answer):
            await asyncio.sleep(0.01)

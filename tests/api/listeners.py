"""Those who listen to what happens, over real connections."""

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
from duetime.config import Settings

PATIENCE = 60.0


class Told(NamedTuple):
    id: int
    kind: str
    data: dict[str, Any]


class Listener:
    """One stream, read as it comes."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()

    async def next(self) -> Told:
        found: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if line:
                    found[name] = value
                elif "data" in found:
                    return Told(int(found["id"]), found["event"], json.loads(found["data"]))
                else:
                    found.clear()
        raise EOFError

    async def until(self, kind: str, action: str) -> Told:
        """The first of this kind; others before it are passed over."""
        while True:
            told = await self.next()
            if (told.kind, told.data.get("action")) == (kind, action):
                return told

    async def all_of(self, job: dt.JobHandle, actions: Iterable[str]) -> list[Told]:
        """What is told of a job, in whatever order: that it started may be known before the answer to who submitted it is in."""
        missing, found = Counter(list(actions)), []
        while missing:
            told = await self.next()
            if told.data.get("id") == str(job.id):
                found.append(told)
                missing -= Counter([told.data["action"]])
        return found

    async def rest(self) -> list[Told]:
        """Everything up to the end."""
        found = []
        try:
            while True:
                found.append(await self.next())
        except EOFError:
            return found


class Place:
    """A service on a port of its own."""

    def __init__(self, app: dt.App, address: str) -> None:
        self.app = app
        self.address = address

    @asynccontextmanager
    async def listening(self, query: str = "", **headers: str) -> AsyncIterator[Listener]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        async with (
            httpx.AsyncClient(base_url=self.address, timeout=PATIENCE, trust_env=False) as client,
            client.stream("GET", f"/api/v1/events{query}", headers=given) as answer,
        ):
            if answer.status_code != 200:
                await answer.aread()
            yield Listener(answer)


@asynccontextmanager
async def service(app: dt.App, **options: Any) -> AsyncIterator[Place]:
    await app.open()
    listener = listen("127.0.0.1", 0)
    try:
        async with serving(build(app, Settings(), **options), listener):
            yield Place(app, address_of(listener))
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
    async with asyncio.timeout(PATIENCE):
        while not (answer if isinstance(answer := done(), bool) else await answer):
            await asyncio.sleep(0.01)

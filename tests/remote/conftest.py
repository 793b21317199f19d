"""A service on a memory store with a real listener, and both clients behind one interface."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

import duetime as dt
from duetime.api.server import address_of, listen, serving
from duetime.api.service import build
from duetime.config import Settings
from tests.api.conftest import RING

KINDS = ("blocking", "awaiting")


@dataclass(slots=True)
class Caller:
    """Either client. Blocking calls run in a thread, because the service uses this event loop."""

    client: dt.Client | dt.AsyncClient

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if inspect.iscoroutinefunction(method):
            return method
        return lambda *args, **options: asyncio.to_thread(method, *args, **options)

    async def first_events(self, count: int, **options: Any) -> list[Any]:
        if isinstance(self.client, dt.Client):
            following = self.client.events(**options)
            found = await asyncio.to_thread(lambda: [next(following) for _ in range(count)])
            following.close()
            return found
        stream = self.client.events(**options)
        found = [await anext(stream) for _ in range(count)]
        await stream.aclose()
        return found

    async def close(self) -> None:
        if isinstance(self.client, dt.Client):
            self.client.close()
        else:
            await self.client.close()


_OPEN: list[Caller] = []


def caller(kind: str, url: str, **options: Any) -> Caller:
    """Closed when the test ends."""
    _OPEN.append(
        made := Caller(dt.Client(url, **options) if kind == "blocking" else dt.AsyncClient(url, **options))
    )
    return made


@pytest.fixture(autouse=True)
async def all_are_closed() -> AsyncIterator[None]:
    yield
    while _OPEN:
        await _OPEN.pop().close()


@dataclass(slots=True)
class Served:
    app: dt.App
    url: str


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    app = dt.App("memory://")
    await app.open()
    listener = listen("127.0.0.1", 0)
    async with serving(build(app, Settings(), ring=RING), listener):
        yield Served(app, address_of(listener))
    await app.close()


@pytest.fixture(params=KINDS)
async def service(request: pytest.FixtureRequest, served: Served) -> AsyncIterator[Caller]:
    made = caller(request.param, served.url, timeout="60s")
    yield made
    await made.close()  # before the service, which waits for its connections

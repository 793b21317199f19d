"""A remote worker of a service on a store in memory, whose time can be moved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

import duetime as dt
from duetime.api.service import build
from duetime.clock import wall_micros
from duetime.config import Settings
from duetime.engine.node.reaper import Reaper
from duetime.model.instant import SECOND
from duetime.model.lease import NodeId
from duetime.observer import Observers
from duetime.stores.memory import MemoryStore
from tests.api.conftest import RING, Api, client_of

MISSING = "01935c2e-7b3a-7000-8000-000000000000"


@dataclass(slots=True)
class Remote:
    api: Api
    id: int
    headers: dict[str, str]

    async def send(self, verb: str, **fields: Any) -> Any:
        done = await self.api.post(f"/workers/{self.id}/{verb}", fields, **self.headers)
        assert done.status_code == 200, done.text
        return done.json()

    async def claim(self, most: int = 10, wait: str = "0s") -> list[dict[str, Any]]:
        jobs: list[dict[str, Any]] = (await self.send("claim", max=most, wait=wait))["jobs"]
        return jobs

    async def claim_one(self) -> dict[str, Any]:
        [job] = await self.claim()
        return named(job)

    async def beat(self, *jobs: dict[str, Any]) -> list[tuple[str, str]]:
        return [(one["id"], one["reason"]) for one in (await self.send("heartbeat", jobs=list(jobs)))["stop"]]

    async def report(self, verb: str, *jobs: dict[str, Any]) -> list[str]:
        return [one["id"] for one in (await self.send(verb, jobs=list(jobs)))["refused"]]


def named(job: dict[str, Any]) -> dict[str, Any]:
    return {"id": job["id"], "attempt": job["attempt"]}


async def join(
    api: Api, *, task: dict[str, Any] | None = None, authorization: str = "", **fields: Any
) -> Remote:
    headers = {"authorization": authorization} if authorization else {}
    body = {
        "name": "mailer",
        "tasks": [{"name": "invoice.send", **(task or {})}],
        "concurrency": 50,
        **fields,
    }
    done = await api.post("/workers", body, **headers)
    assert done.status_code == 201, done.text
    return Remote(api, done.json()["worker"], headers)


async def job(api: Api, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await api.get(f"/jobs/{job_id}")).json()
    return found


class Moved:
    """The clock of the store, moved by hand."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> int:
        return wall_micros() + self.ahead


@dataclass(slots=True)
class TimedApi(Api):
    time: Moved

    async def move(self, seconds: float) -> None:
        self.time.ahead += int(seconds * SECOND)
        await self.app.clock.follow(self.app.store.time)

    async def reap(self) -> list[str]:
        """What a node does to the jobs of dead workers."""
        reaper = Reaper(self.app.store, self.app.clock, NodeId(0), Observers())
        await reaper.run_once()
        return [node.name for node in await self.app.store.nodes() if node.dead]


@pytest.fixture
async def timed() -> AsyncIterator[TimedApi]:
    time = Moved()
    app = dt.App(MemoryStore(time))
    await app.open()
    async with client_of(build(app, Settings(), ring=RING)) as client:
        yield TimedApi(app, client, time)
    await app.close()


async def held(api: Api, number: int) -> None:
    """Until so many requests wait."""
    polls = api.client._transport.app.state.service.long_polls  # type: ignore[attr-defined]
    while len(polls) < number:
        await asyncio.sleep(0)

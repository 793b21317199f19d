"""The service on a memory store, called in-process without a socket."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
import pytest

import duetime as dt
from duetime.api.service import build
from duetime.config import Settings
from duetime.model.keyring import KeyRing
from tests.api.event_listeners import ServedApp, service, worker

RING = KeyRing.parse(["k1:" + base64.b64encode(b"k" * 32).decode()])
TASK = {"type": "task", "name": "invoice.send"}


@dataclass(slots=True)
class Api:
    app: dt.App
    client: httpx.AsyncClient

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """`body` as JSON, or as it is when it is bytes. Names of headers are written with underscores."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and "content-type" not in given:
            given["content-type"] = "application/json"
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        return await self.client.request(method, f"/api/v1{path}", content=data, headers=given)

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.ask("POST", path, body, **headers)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.ask("GET", path, **headers)

    async def submit(self, **fields: Any) -> str:
        done = await self.post("/jobs", {"target": TASK, **fields})
        assert done.status_code == 201, done.text
        job_id: str = done.json()["id"]
        return job_id


def client_of(service: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=service, raise_app_exceptions=False), base_url="http://localhost"
    )


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    app = dt.App("memory://")
    await app.open()
    async with client_of(build(app, Settings(), ring=RING)) as client:
        yield Api(app, client)
    await app.close()


def refused(answer: httpx.Response, status: int, code: str, field: str | None = None) -> dict[str, Any]:
    """Check that this is a complete problem+json."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem: dict[str, Any] = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code), problem
    assert problem["type"] == f"urn:duetime:problem:{code}"
    assert problem["detail"]
    assert problem["title"]
    assert problem["request_id"] == answer.headers["x-request-id"]
    if field is not None:
        assert problem["field"] == field, problem
    return problem


@pytest.fixture
async def served() -> AsyncIterator[ServedApp]:
    async with service(worker("memory://")) as made:
        yield made

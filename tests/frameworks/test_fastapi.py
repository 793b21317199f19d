"""FastAPI and Starlette: the App lives as long as the web application, and works inside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import duetime as dt
from duetime.frameworks import starlette
from duetime.frameworks.fastapi import Duetime, lifespan

pytestmark = pytest.mark.slow


@pytest.fixture
def app(tmp_path: Path) -> Iterator[dt.App]:
    made = dt.App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @made.task("greet")
    async def greet(name: str) -> str:
        return f"hello {name}"

    yield made
    assert not made.is_open, "it closes with the web application"


def fastapi_on(app: dt.App, **options: Any) -> FastAPI:
    web = FastAPI(lifespan=lifespan(app, **options))

    @web.post("/greetings/{name}")
    async def greet(name: str, duetime: Duetime) -> str:
        return str((await duetime.submit("greet", name=name)).id)

    @web.get("/greetings/{job_id}")
    async def greeting(job_id: UUID, duetime: Duetime, wait: bool = True) -> dict[str, Any]:
        job = await duetime.get_job(job_id)
        if wait:
            await job.wait("60s")
        return {"state": job.state, "result": job.result}

    return web


def test_the_worker_inside_runs_what_views_submit(app: dt.App) -> None:
    with TestClient(fastapi_on(app, worker=True, concurrency=2)) as client:
        job_id = client.post("/greetings/anna").json()
        assert client.get(f"/greetings/{job_id}").json() == {"state": "succeeded", "result": "hello anna"}
        assert app.is_open


def test_without_a_worker_it_only_submits(app: dt.App) -> None:
    web = fastapi_on(app, worker=False, migrate=True)
    for _ in range(2):  # a web application may live twice, as in tests
        with TestClient(web) as client:
            job_id = client.post("/greetings/anna").json()
            assert client.get(f"/greetings/{job_id}?wait=false").json() == {
                "state": "pending",
                "result": None,
            }


def test_a_lifespan_of_ones_own_lives_inside_it(app: dt.App) -> None:
    seen: list[bool] = []

    @asynccontextmanager
    async def own(web: Starlette) -> AsyncIterator[dict[str, str]]:
        seen.append(app.is_open)
        yield {"shop": "open"}
        seen.append(app.is_open)

    async def state(request: Request) -> JSONResponse:
        return JSONResponse([request.state.shop, starlette.get_app(request) is app])

    web = Starlette(routes=[Route("/", state)], lifespan=starlette.lifespan(app, worker=False, inner=own))
    with TestClient(web) as client:
        assert client.get("/").json() == ["open", True]
    assert seen == [True, True]


def test_a_wrong_option_is_told_at_the_start(app: dt.App) -> None:
    with pytest.raises(dt.UnknownOption), TestClient(fastapi_on(app, concurency=2)):
        pass


def test_without_the_lifespan_the_dependency_says_what_is_missing(app: dt.App) -> None:
    web = FastAPI()

    @web.get("/")
    async def view(duetime: Duetime) -> None: ...

    with TestClient(web) as client, pytest.raises(dt.NotOpen, match="lifespan"):
        client.get("/")

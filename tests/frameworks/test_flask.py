"""Flask: views submit through the blocking face, tasks see the application, commands work on its App."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask, current_app

import duetime as dt
from duetime.frameworks.flask import get_app, init_app

pytestmark = pytest.mark.slow


@pytest.fixture
def app(tmp_path: Path) -> Iterator[dt.App]:
    made = dt.App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @made.task("whose.plain")
    def whose_plain() -> str:
        return current_app.name

    @made.task("whose.async")
    async def whose_async() -> str:
        return current_app.name

    yield made
    made.sync.close()


def make_web(name: str, app: dt.App) -> Flask:
    web = Flask(name)
    init_app(web, app)

    @web.post("/<task>")
    def submit(task: str) -> str:
        return str(get_app().sync.submit(task).id)

    return web


@pytest.fixture
def web(app: dt.App) -> Flask:
    make_web("an_earlier_one", app)
    return make_web("shop", app)


async def work_off(app: dt.App, job_ids: list[str]) -> list[str]:
    async with app.running():
        return [(await (await app.get_job(job_id)).wait("60s")).result for job_id in job_ids]


def test_tasks_that_views_submit_see_the_application(web: Flask, app: dt.App) -> None:
    client = web.test_client()
    job_ids = [client.post(f"/{task}").text for task in ("whose.plain", "whose.async")]
    assert asyncio.run(work_off(app, job_ids)) == ["shop", "shop"]


def test_commands_work_on_its_app(web: Flask, app: dt.App) -> None:
    job_id = web.test_client().post("/whose.plain").text
    done = web.test_cli_runner().invoke(args=["duetime", "job", "list", "--json"])
    assert done.exit_code == 0, done.output
    assert [job["id"] for job in json.loads(done.output)] == [job_id]
    helped = web.test_cli_runner().invoke(args=["duetime", "worker", "--help"])
    assert "Usage: flask duetime worker" in helped.output
    assert web.test_cli_runner().invoke(args=["duetime", "job", "show", job_id[::-1]]).exit_code == 1


def test_an_application_without_an_app_says_so() -> None:
    with Flask("bare").app_context(), pytest.raises(dt.NotOpen, match="init_app"):
        get_app()

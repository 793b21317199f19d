"""Nodes that differ in what their operator allows: real processes on one store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.engine.submit.submission import JobRequest
from duetime.invokers.http.echo import EchoAgent
from duetime.model.job import JobFilter, State
from duetime.model.target import LISTED, HttpTarget
from tests.app.waiting import eventually
from tests.cli.conftest import Duetime
from tests.cli.node import Node

JOBS = 200


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, folder: Path) -> Any:
    if request.param == "sqlite":
        return f"sqlite:///{folder / 'duetime.db'}"
    return request.getfixturevalue("postgres_url")


async def test_node_without_the_permission_leaves_jobs_to_one_that_has_it(
    store: str, folder: Path, duetime: Duetime
) -> None:
    app, nodes = dt.App(store), []
    await app.migrate()
    await app.open()

    async def count(state: State) -> int:
        return await app.store.count_jobs(JobFilter("default", frozenset({state})), JOBS + 1)

    async def publishing(number: int) -> bool:
        return sum(node.permissions is not None for node in await app.nodes.views()) == number

    def start(*options: str) -> None:
        words = ("serve", "--roles", "planner,worker", "--store", store, *options)
        nodes.append(Node(folder, *words))

    try:
        start()
        await eventually(lambda: publishing(1))
        async with EchoAgent() as agent:
            target = HttpTarget.from_json({"type": "http", "url": f"{agent.url}/run"})
            assert target.name == LISTED
            request = JobRequest(dt.NewJob(target.name, payload={}), target.to_spec())
            jobs = [await app.jobs.submit_request(request) for _ in range(JOBS)]
            reason = await app.why.job(jobs[0].id)
            assert (reason.code, reason.remedy) == (
                "permission_missing",
                "start a worker with --allow 127.0.0.1",
            )
            start("--allow", "127.0.0.1")

            async def done() -> bool:
                return await count(State.SUCCEEDED) == JOBS

            await eventually(done)
            assert len(agent.calls) == JOBS
        able = next(one for one in await app.nodes.views() if "allow" in (one.permissions or {}))
        found = await app.store.list_jobs(JobFilter("default", target="@http"), JOBS + 1)
        assert {(job.node, job.attempt, job.failures) for job in found} == {(able.id, 1, 0)}
        shown = (await asyncio.to_thread(duetime, "--store", store, "node", "list", "--json")).json
        assert sorted(node["lacks"] for node in shown) == [[], ["allow 127.0.0.1"]]
        done_well = await asyncio.to_thread(duetime, "--store", store, "doctor", "--json")
        checks = {check["name"]: check for check in done_well.json}
        assert (checks["permissions"]["level"], "lacks allow 127.0.0.1" in checks["permissions"]["text"]) == (
            "ok",
            True,
        )
    finally:
        for node in nodes:
            node.kill()
        await app.close()

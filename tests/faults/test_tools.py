"""SIGKILL in the middle of tasks that keep checkpoints or write through ctx.connection: they resume, and nothing is written twice."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import duetime as dt
from tests.faults.fleet import Fleet
from tests.faults.tool_worker import build

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

STEPS = 100
figures = logging.getLogger("figures")


class ToolFleet(Fleet):
    def __init__(self, store: str, folder: Path) -> None:
        super().__init__(store, folder)
        self.app = build(store, str(self.record))

    def spawn(self, failpoints: str = "", store: str | None = None, environment: object = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.faults.tool_worker", store or self.store, str(self.record), self.lease]
        with self._log(len(self.workers)).open("wb") as log:
            worker = subprocess.Popen(command, env={**os.environ, "DUETIME_FAILPOINTS": failpoints}, stdout=log, stderr=subprocess.STDOUT)
        self.workers.append(worker)
        return worker

    @property
    def on_postgres(self) -> bool:
        return self.store.startswith("postgresql")

    async def result(self, task: str) -> object:
        job = await self.app.submit(task)
        await self.finished([job])
        assert job.state == "succeeded", job.error
        return job.result


@pytest.fixture
async def tools(store_url: str, tmp_path: Path) -> AsyncIterator[ToolFleet]:
    async with ToolFleet(store_url, tmp_path) as made:
        yield made


async def test_a_killed_task_is_resumed_from_its_last_checkpoint(tools: ToolFleet) -> None:
    """P8, A9: by the other node, which learns of the death from the store: the lease would have lasted for an hour."""
    tools.lease = "1h"
    workers = {worker.pid: worker for worker in (tools.spawn(), tools.spawn())}
    await tools.joined(2)
    job = await tools.app.submit("walk", steps=STEPS)
    await tools.until(lambda: _walked(tools, 10), "some steps")
    workers[tools.seen("start")[0]["pid"]].kill()
    killed_at = time.time()
    await tools.finished([job])

    first, second = tools.seen("start")
    last_step = max(event["step"] for event in tools.seen("step") if event["attempt"] == 1)
    assert second["step"] in (last_step, last_step + 1), "the last one may have been written without being recorded"
    assert (job.state, job.attempt, job.failures) == ("succeeded", 2, 0)
    assert job.result == STEPS - second["step"]
    assert second["pid"] != first["pid"]
    figures.info("resumed after %.3f s at step %d of %d", second["at"] - killed_at, second["step"], STEPS)


async def _walked(tools: ToolFleet, steps: int) -> bool:
    return len(tools.seen("step")) >= steps


@pytest.mark.parametrize("step", ["desk.before_checkpoint=kill@5", "desk.after_checkpoint=kill@5"])
async def test_killed_right_before_and_after_a_checkpoint(tools: ToolFleet, step: str) -> None:
    doomed = tools.spawn(step)
    await tools.joined(1)
    job = await tools.app.submit("walk", steps=8)
    await asyncio.to_thread(doomed.wait)
    assert doomed.returncode == -signal.SIGKILL, tools.logs()
    tools.spawn()
    await tools.finished([job])
    first, second = tools.seen("start")
    assert (first["step"], second["step"]) == (0, 4 if "before" in step else 5)
    assert job.result == 8 - second["step"]


@pytest.mark.parametrize("step", ["worker.before_commit=kill", "worker.after_commit=kill", "worker.before_settle=kill@2"])
async def test_killed_around_the_commit(tools: ToolFleet, step: str) -> None:
    """The writes and the success are one: there is no moment between them."""
    helper = tools.spawn()
    await tools.result("prepare")
    helper.terminate()
    await asyncio.to_thread(helper.wait)
    doomed = tools.spawn(step)
    await tools.joined(1)
    jobs = await tools.app.submit_many([dt.NewJob("add") for _ in range(5)])
    await asyncio.to_thread(doomed.wait)
    assert doomed.returncode == -signal.SIGKILL, tools.logs()
    tools.spawn()
    await tools.finished(jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    assert await tools.result("read") == {"amount": 5, "entries": 5, "jobs": 5}


async def test_every_job_adds_one_whoever_is_killed(tools: ToolFleet) -> None:
    """D9: exactly once, because the write and the job's completion commit together."""
    count = 2_000 if tools.on_postgres else 400
    chance = random.Random(7)
    for _ in range(3):
        tools.spawn()
    await tools.result("prepare")
    await tools.joined(3)
    jobs = await tools.app.submit_many([dt.NewJob("add") for _ in range(count)])
    kills = 0

    async def all_done() -> bool:
        return all(queue.pending == queue.running == 0 for queue in await tools.app.store.count_jobs())

    while not await all_done():
        await asyncio.sleep(chance.uniform(0.1, 0.6))
        living = [worker for worker in tools.workers if worker.poll() is None]
        if len(living) == 3 and kills < 15:
            chance.choice(living).kill()
            kills += 1
        if len(living) < 3:
            tools.spawn()
    await tools.finished(jobs)
    poisoned = await _retry_those_held_to_be_poison(tools, jobs)
    repeated = sum(job.attempt > 1 for job in jobs)
    starts = len(tools.seen("start"))
    figures.info("%d jobs, %d kills, %d ran more than once, %d starts, %d retried as poison", count, kills, repeated, starts, poisoned)
    assert repeated > 0, "the kills hit nobody at work"
    assert await tools.result("read") == {"amount": count, "entries": count, "jobs": count}


async def _retry_those_held_to_be_poison(tools: ToolFleet, jobs: list[dt.JobHandle]) -> int:
    """Who was at work at three kills in a row is held to be their cause. Nothing of it was committed, so retrying it is safe."""
    dead = [job for job in jobs if job.state != "succeeded"]
    assert all(job.state == "dead" and (job.error or "").startswith("poison") for job in dead), [job.error for job in dead]
    again = [await tools.app.retry_job(job.id) for job in dead]
    await tools.finished(again)
    assert {job.state for job in again} <= {"succeeded"}
    return len(dead)

"""SIGKILL in the middle of tasks that save checkpoints or write through ctx.connection: they resume and write
nothing twice."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import time

import pytest

import duetime as dt
from tests.faults.fleet import TIMEOUT
from tests.faults.tool_fleet import ToolFleet

pytestmark = pytest.mark.slow

STEPS = 100
figures = logging.getLogger("figures")


async def test_killed_task_resumes_from_its_last_checkpoint(tools: ToolFleet) -> None:
    """On the other node, which learns of the kill from the store; the lease would last an hour."""
    tools.lease = "1h"
    workers = {worker.pid: worker for worker in (tools.spawn(), tools.spawn())}
    await tools.joined(2)
    job = await tools.app.submit("steps", steps=STEPS)
    await tools.recorded("step", 10)
    workers[tools.seen("start")[0]["pid"]].kill()
    killed_at = time.time()
    await tools.finished([job])

    first, second = tools.seen("start")
    last_step = max(event["step"] for event in tools.seen("step") if event["attempt"] == 1)
    assert second["step"] in (last_step, last_step + 1), (
        "the last one may have been written without being recorded"
    )
    assert (job.state, job.attempt, job.failures) == ("succeeded", 2, 0)
    assert job.result == STEPS - second["step"]
    assert second["pid"] != first["pid"]
    figures.info("resumed after %.3f s at step %d of %d", second["at"] - killed_at, second["step"], STEPS)


@pytest.mark.parametrize("step", ["checkpoints.before_save=kill@5", "checkpoints.after_save=kill@5"])
async def test_kill_right_before_or_after_a_checkpoint(tools: ToolFleet, step: str) -> None:
    doomed = tools.spawn(step)
    await tools.joined(1)
    job = await tools.app.submit("steps", steps=8)
    await asyncio.to_thread(doomed.wait, TIMEOUT)
    assert doomed.returncode == -signal.SIGKILL, tools.logs()
    tools.spawn()
    await tools.finished([job])
    first, second = tools.seen("start")
    assert (first["step"], second["step"]) == (0, 4 if "before" in step else 5)
    assert job.result == 8 - second["step"]


@pytest.mark.parametrize(
    "step", ["worker.before_commit=kill", "worker.after_commit=kill", "worker.before_settle=kill@2"]
)
async def test_kill_around_the_commit(tools: ToolFleet, step: str) -> None:
    """The writes and the success are committed together."""
    helper = tools.spawn()
    await tools.result("prepare")
    helper.terminate()
    await asyncio.to_thread(helper.wait, TIMEOUT)
    doomed = tools.spawn(step)
    await tools.joined(1)
    jobs = await tools.app.submit_many([dt.NewJob("add") for _ in range(5)])
    await asyncio.to_thread(doomed.wait, TIMEOUT)
    assert doomed.returncode == -signal.SIGKILL, tools.logs()
    tools.spawn()
    await tools.finished(jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    assert await tools.result("read") == {"amount": 5, "entries": 5, "jobs": 5}


async def test_every_job_adds_one_despite_kills(tools: ToolFleet) -> None:
    """Exactly once, because the write and the success of the job are committed together."""
    count = 1_000
    chance = random.Random(7)
    for _ in range(3):
        tools.spawn()
    await tools.result("prepare")
    await tools.joined(3)
    jobs = await tools.app.submit_many([dt.NewJob("add") for _ in range(count)])
    kills = 0

    while not await tools.queues_are_empty():
        await asyncio.sleep(chance.uniform(0.1, 0.6))  # kills at random times
        alive = [worker for worker in tools.workers if worker.poll() is None]
        if len(alive) == 3 and kills < 8:
            chance.choice(alive).kill()
            kills += 1
        if len(alive) < 3:
            tools.spawn()
    await tools.finished(jobs)
    assert [job.error for job in jobs if job.state != "succeeded"] == []
    repeated = sum(job.attempt > 1 for job in jobs)
    starts = len(tools.seen("start"))
    figures.info(
        "%d jobs, %d kills, %d ran more than once, %d starts, at most %d lost attempts of a job",
        count,
        kills,
        repeated,
        starts,
        max(job.attempt for job in jobs) - 1,
    )
    assert repeated > 0, "no kill hit a running job"
    assert await tools.result("read") == {"amount": count, "entries": count, "jobs": count}

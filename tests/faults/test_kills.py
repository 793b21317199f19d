"""SIGKILL at every step: no job is lost or completed twice, and only jobs that the killed worker had started
run again."""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import duetime as dt
from tests.faults import random_kills
from tests.faults.fleet import LEASE, SHORT_LEASE, TIMEOUT, Fleet

pytestmark = pytest.mark.slow

# The failpoints at which the process is killed.
STEPS = [
    "planner.before_fire",
    "planner.after_fire",
    "worker.after_claim",
    "worker.before_invoke",
    "worker.after_invoke",
    "worker.before_settle",
    "worker.after_settle",
]
JOBS = 30
KILLS = 2  # of workers, in the short run of the suite
SEED = 1


@pytest.mark.parametrize("step", STEPS)
async def test_jobs_survive_a_kill_at_each_step(fleet: Fleet, step: str) -> None:
    fleet.lease = SHORT_LEASE  # other nodes take over its planning when this ends
    doomed = fleet.spawn(f"{step}=kill@2")
    await fleet.joined(1)
    await fleet.app.schedule("tick", "work", dt.Every("1s"), missed=dt.Missed("all"))
    jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 0.05}) for _ in range(JOBS)])
    later = await fleet.app.submit_many([dt.NewJob("work", payload={}, delay="1500ms") for _ in range(JOBS)])
    await asyncio.to_thread(doomed.wait, TIMEOUT)
    assert doomed.returncode == -signal.SIGKILL, fleet.logs()

    fleet.lease = LEASE
    fleet.spawn()
    await fleet.finished([*jobs, *later])
    await fleet.check_fires("tick", 1.0)

    for job in [*jobs, *later]:
        assert job.state == "succeeded", job.error
        assert job.failures == 0, "a killed worker is not a failure of the task"
    fleet.check_starts()
    assert fleet.unexplained({doomed.pid}) == []


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
async def test_fires_planned_ahead_follow_the_missed_policy_after_an_outage(
    fleet: Fleet, end: signal.Signals
) -> None:
    policies = {"skip": dt.Missed("skip"), "within": dt.Missed("latest", within="4s")}
    for name, missed in policies.items():
        await fleet.app.schedule(name, "work", dt.Every("1s"), missed=missed)
    first = fleet.spawn(environment={"WORKER_LOOKAHEAD": "5s"})
    await fleet.recorded("effect", 4)
    first.send_signal(end)
    await asyncio.to_thread(first.wait, TIMEOUT)
    planned = [job for job in await fleet.app.jobs(limit=500) if job.state == "pending"]
    assert len(planned) >= 3, "the planner plans ahead"
    newest = max(job.fire_time for job in planned) + timedelta(seconds=5)

    async def all_are_late() -> bool:
        return datetime.now(UTC) > newest

    await fleet.until(all_are_late, "the planned fires to be late")
    begun = len(fleet.seen("start"))
    fleet.spawn()
    await fleet.recorded("effect", begun + 4)
    await fleet.finished(planned)
    assert {str(job.state) for job in planned} == {"skipped"}
    reasons = {(job.error or "").partition(";")[0] for job in planned}
    assert reasons <= {"missed: policy skip", "missed: older than 4s"}
    late = [event for event in fleet.seen("start")[begun:] if event["at"] - event["due"] > 8]
    assert all(event["attempt"] > 1 for event in late), (
        "only what the killed worker may have started runs late"
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.server if name in ("postgres", "mariadb") else ())
        for name in random_kills.STORES
    ],
)
async def test_no_job_is_lost_early_or_doubled_when_workers_and_server_are_killed(
    name: str, tmp_path: Path
) -> None:
    """`make soak-kills` is the long run."""
    with random_kills.started(name, tmp_path) as store:
        account = await random_kills.kill_run(store, tmp_path, KILLS, SEED)
    assert account.jobs > 0
    assert account.kills == KILLS
    assert len(account.servers) == (name != "sqlite"), "the server was killed, too"
    account.check()


async def test_jobs_survive_a_kill_of_all_workers(fleet: Fleet) -> None:
    first = [fleet.spawn(), fleet.spawn()]
    await fleet.joined(2)
    jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 0.2}) for _ in range(100)])
    await fleet.recorded("start", 20)
    for worker in first:
        worker.kill()
    fleet.spawn()
    await fleet.finished(jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    fleet.check_starts()
    assert fleet.unexplained({worker.pid for worker in first}) == []


async def test_job_that_kills_its_workers_becomes_dead(fleet: Fleet) -> None:
    """After a limited number of kills, and other jobs count no failures."""
    poison = await fleet.app.submit("die")
    jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 0.01}) for _ in range(50)])

    async def settled() -> bool:
        if all(worker.poll() is not None for worker in fleet.workers):
            fleet.spawn()
        return (await poison.refresh()).state.final

    await fleet.until(settled, "the job to become dead")
    assert poison.state == "dead"
    assert "poison" in (poison.error or "")
    fleet.spawn()
    await fleet.finished(jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    assert {job.failures for job in jobs} == {0}


async def test_unstarted_jobs_of_a_stopping_worker_run_elsewhere_immediately(fleet: Fleet) -> None:
    """They do not wait for the lease to end; running jobs finish."""
    fleet.lease = "1h"
    first = fleet.spawn()
    await fleet.joined(1)
    jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 0.3}) for _ in range(100)])
    await fleet.recorded("start", 5)
    fleet.spawn()
    await fleet.joined(2)
    first.terminate()
    assert await asyncio.to_thread(first.wait, TIMEOUT) == 0, fleet.logs()
    await fleet.finished(jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    assert all(len(starts) == 1 for starts in fleet.starts().values()), "an orderly stop repeats nothing"
    fleet.check_starts()


async def test_rolling_restart_under_load_repeats_nothing(fleet: Fleet) -> None:
    """J5. One node after another is replaced, with SIGTERM."""
    fleet.lease = "1h"
    for _ in range(2):
        fleet.spawn()
    await fleet.joined(2)
    await fleet.app.schedule("tick", "work", dt.Every("1s"), missed=dt.Missed("all"))
    jobs: list[dt.JobHandle] = []

    async def submit() -> None:
        while True:
            jobs.extend(await fleet.app.submit_many([dt.NewJob("work", {"seconds": 0.1})] * 5))
            await asyncio.sleep(0.05)

    load = asyncio.create_task(submit())
    for old in fleet.workers[:]:
        fleet.spawn()
        await fleet.newest_joined()
        old.terminate()
        assert await asyncio.to_thread(old.wait, TIMEOUT) == 0, fleet.logs()
    load.cancel()
    await asyncio.wait([load])
    await fleet.finished(jobs)
    assert {(job.state, job.attempt) for job in jobs} == {("succeeded", 1)}
    await fleet.check_fires("tick", 1.0)
    fleet.check_starts()
    assert fleet.unexplained(()) == []

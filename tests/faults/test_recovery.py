"""After a SIGKILL work goes on without waiting for a lease. Kills in the middle of the writes that decide about
a job."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator
from uuid import UUID

import psycopg
import pytest

import duetime as dt
from tests.faults.fleet import TIMEOUT, Fleet

pytestmark = pytest.mark.slow

REAPER = {"WORKER_ROLES": "planner"}
SCHEDULES = 6
WATCHED = 3  # seconds of fires after the planner was killed
KILLS = 3
# Seconds. A node whose hint is lost looks after one; the rest is for a machine that does other things, too.
RECOVERY = 6.0


async def test_jobs_of_a_killed_worker_restart_before_the_lease_ends(fleet: Fleet) -> None:
    """The store reports the kill to the other worker; the lease would last an hour."""
    fleet.lease = "1h"
    for workers in range(2, 2 + KILLS):
        while len(fleet.workers) < workers:
            fleet.spawn()
        await fleet.joined(2)
        before = len(fleet.seen("start"))
        jobs = await fleet.app.submit_many([dt.NewJob("linger") for _ in range(10)])
        await fleet.recorded("start", before + len(jobs))
        first = {job.id: fleet.starts()[str(job.id)][0]["pid"] for job in jobs}
        killed = first[jobs[0].id]
        lost = [job for job in jobs if first[job.id] == killed]
        next(worker for worker in fleet.workers if worker.pid == killed).kill()
        killed_at = time.time()
        await fleet.finished(lost)
        assert {(job.state, job.attempt, job.failures) for job in lost} == {("succeeded", 2, 0)}
        await fleet.finished(jobs)
        restarts: list[float] = [fleet.starts()[str(job.id)][1]["at"] - killed_at for job in lost]
        assert max(restarts) <= RECOVERY
    fleet.check_starts()


async def test_fires_of_a_killed_planner_go_on_before_its_lease_ends(fleet: Fleet) -> None:
    """With the shortest look-ahead: nearly nothing is planned when the planner dies. Another planner takes its
    segments; the lease would last an hour."""
    fleet.lease = "1h"
    fleet.spawn(environment={"WORKER_ROLES": "worker"})
    planner = {"WORKER_ROLES": "planner", "WORKER_LOOKAHEAD": "1s"}
    doomed = fleet.spawn(environment=planner)
    await fleet.joined(2)
    for number in range(SCHEDULES):
        # On a busy machine a fire can be late.
        await fleet.app.schedule(f"tick-{number}", "work", dt.Every("1s"), missed=dt.Missed("all"))
    fleet.spawn(environment=planner)
    await fleet.joined(3)
    await fleet.recorded("start", len(fleet.seen("start")) + 3 * SCHEDULES)  # they share the segments
    doomed.kill()
    killed_at = int(time.time())
    last_fire = killed_at + WATCHED

    async def watched() -> bool:
        return [event["due"] for event in fleet.seen("start")].count(last_fire) == SCHEDULES

    await fleet.until(watched, "the fires after the kill")
    events = [event for event in fleet.seen("start") if event["due"] in range(killed_at + 1, last_fire + 1)]
    assert max(event["at"] - event["due"] for event in events) <= RECOVERY
    fires = Counter(event["due"] for event in events)
    assert fires == dict.fromkeys(range(killed_at + 1, last_fire + 1), SCHEDULES), (
        "a fire is missing or doubled"
    )
    fleet.check_starts()


@pytest.mark.parametrize("attempts", [2, 1], ids=["retry", "dead letter"])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_failure_counts_once_if_the_worker_is_killed_around_the_write(
    fleet: Fleet, moment: str, attempts: int
) -> None:
    """What was written counts; what was not is a lost attempt, which runs again."""
    doomed = fleet.spawn(f"worker.{moment}_settle=kill")
    await fleet.joined(1)
    job = await _submit_failing(fleet, attempts)
    await _is_killed(fleet, doomed)
    await _check_failure(fleet, job, attempts)
    assert job.attempt == attempts + (moment == "before")


@pytest.mark.server
@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("attempts", [2, 1], ids=["retry", "dead letter"])
async def test_failure_counts_once_if_the_worker_is_killed_during_the_write(
    fleet: Fleet, attempts: int
) -> None:
    """Only a server goes on with a statement whose process is gone: the failure is written."""
    doomed = fleet.spawn()
    await fleet.joined(1)
    job = await _submit_failing(fleet, attempts)
    async with _locked(fleet, job.id):
        await fleet.until(lambda: _is_blocked(fleet), "the worker to wait for the lock")
        doomed.kill()
    await _is_killed(fleet, doomed)
    await _check_failure(fleet, job, attempts)
    assert job.attempt == attempts


@pytest.mark.parametrize("moment", ["after_expire", "before_settle"])
async def test_lost_job_runs_once_more_if_the_reaper_is_killed_too(fleet: Fleet, moment: str) -> None:
    job = await _submit_lost(fleet)
    await _is_killed(fleet, fleet.spawn(f"reaper.{moment}=kill", environment=REAPER))
    await _check_recovered(fleet, job)


@pytest.mark.server
@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_lost_job_runs_once_more_if_the_reaper_is_killed_during_the_write(fleet: Fleet) -> None:
    job = await _submit_lost(fleet)
    async with _locked(fleet, job.id):
        doomed = fleet.spawn(environment=REAPER)
        await fleet.until(lambda: _is_blocked(fleet), "the reaper to wait for the lock")
        doomed.kill()
    await _is_killed(fleet, doomed)
    await _check_recovered(fleet, job)


async def _submit_failing(fleet: Fleet, attempts: int) -> dt.JobHandle:
    """Wait until its first attempt has started."""
    retry = dt.Retry(max_attempts=attempts, first_delay="100ms")
    (job,) = await fleet.app.submit_many([dt.NewJob("work", {"seconds": 0.3, "fails": 9}, retry=retry)])
    await fleet.recorded("start", 1)
    return job


async def _check_failure(fleet: Fleet, job: dt.JobHandle, attempts: int) -> None:
    fleet.spawn()
    await fleet.finished([job])
    assert (job.state, job.failures) == ("dead", attempts)
    assert [dead.id for dead in await fleet.app.jobs(state="dead")] == [job.id]
    fleet.check_starts()


async def _submit_lost(fleet: Fleet) -> dt.JobHandle:
    """A job that runs when its worker is killed."""
    worker = fleet.spawn()
    await fleet.joined(1)
    job = await fleet.app.submit("linger")
    await fleet.recorded("start", 1)
    worker.kill()
    return job


async def _check_recovered(fleet: Fleet, job: dt.JobHandle) -> None:
    fleet.spawn()
    await fleet.finished([job])
    assert (job.state, job.attempt, job.failures) == ("succeeded", 2, 0)
    fleet.check_starts()


async def _is_killed(fleet: Fleet, doomed: subprocess.Popen[bytes]) -> None:
    await asyncio.to_thread(doomed.wait, TIMEOUT)
    assert doomed.returncode == -signal.SIGKILL, fleet.logs()


@contextlib.asynccontextmanager
async def _locked(fleet: Fleet, job_id: UUID) -> AsyncIterator[None]:
    async with await psycopg.AsyncConnection.connect(fleet.store) as connection:
        await connection.execute("SELECT FROM duetime.jobs WHERE id = %s FOR UPDATE", [job_id])
        yield


async def _is_blocked(fleet: Fleet) -> bool:
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with await psycopg.AsyncConnection.connect(fleet.store) as connection:
        row = await (await connection.execute(blocked)).fetchone()
        return row is not None and row[0] > 0

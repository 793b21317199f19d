"""How soon work goes on after a SIGKILL, and kills in the middle of the writes that decide about a job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from uuid import UUID

import psycopg
import pytest

import duetime as dt
from tests.faults.fleet import Fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PROMISED = 2.0  # seconds
TRIES = 3  # on a busy machine one of them is enough
SCHEDULES = 6
WATCHED = 6.0  # seconds after the planner was killed
figures = logging.getLogger("figures")


async def test_jobs_of_a_killed_worker_restart_within_two_seconds(fleet: Fleet) -> None:
    """The other worker learns of the kill from the store; the lease would last an hour."""
    fleet.lease = "1h"
    fleet.spawn()
    delays: list[float] = []
    while len(delays) < TRIES and min(delays, default=PROMISED) >= PROMISED:
        fleet.spawn()
        await fleet.joined(2)
        jobs = await fleet.app.submit_many([dt.NewJob("linger") for _ in range(10)])
        ids = {str(job.id) for job in jobs}

        async def started(ids: set[str] = ids) -> bool:
            return ids <= fleet.starts().keys()

        await fleet.until(started, "all jobs to start")
        killed = {worker.pid: worker for worker in fleet.workers}[fleet.starts()[str(jobs[0].id)][0]["pid"]]
        lost = [job for job in jobs if fleet.starts()[str(job.id)][0]["pid"] == killed.pid]
        killed.kill()
        killed_at = time.time()
        await fleet.finished(lost)
        assert {(job.state, job.attempt, job.failures) for job in lost} == {("succeeded", 2, 0)}
        delays.append(max(fleet.starts()[str(job.id)][1]["at"] for job in lost) - killed_at)
    figures.info("lost jobs restarted after %s s", delays)
    assert min(delays) < PROMISED, delays
    fleet.check_starts()


async def test_fires_after_a_kill_of_their_planner_are_at_most_two_seconds_late(fleet: Fleet) -> None:
    """With the shortest look-ahead: nearly nothing is planned when the planner dies."""
    fleet.lease = "1h"
    fleet.spawn(environment={"WORKER_ROLES": "worker"})
    planner = {"WORKER_ROLES": "planner", "WORKER_LOOKAHEAD": "1s"}
    planners = [fleet.spawn(environment=planner)]
    await fleet.joined(2)
    for number in range(SCHEDULES):
        await fleet.app.schedule(f"tick-{number}", "work", dt.Every("1s"))
    late: list[float] = []
    while len(late) < TRIES and min(late, default=PROMISED) >= PROMISED:
        planners.append(fleet.spawn(environment=planner))
        await fleet.joined(3)
        await fleet.recorded("start", len(fleet.seen("start")) + 4 * SCHEDULES)  # they share the segments
        planners.pop(0).kill()
        killed_at = time.time()
        last_fire = int(killed_at + WATCHED)

        async def watched(last_fire: int = last_fire) -> bool:
            return [event["due"] for event in fleet.seen("start")].count(last_fire) == SCHEDULES

        await fleet.until(watched, "the fires after the kill")
        fires = [event for event in fleet.seen("start") if killed_at < event["due"] <= last_fire]
        assert len(fires) == SCHEDULES * (last_fire - int(killed_at)), "a fire is missing or doubled"
        late.append(max(event["at"] - event["due"] for event in fires))
    figures.info("fires after a kill of their planner were at most %s s late", late)
    assert min(late) <= PROMISED, late
    fleet.check_starts()


@pytest.mark.parametrize("attempts", [2, 1], ids=["retry", "dead letter"])
@pytest.mark.parametrize("moment", ["before", "during", "after"])
async def test_failure_counts_once_if_the_worker_is_killed_while_it_is_written(
    fleet: Fleet, moment: str, attempts: int
) -> None:
    """What was written counts; what was not is a lost attempt, which runs again."""
    doomed = fleet.spawn("" if moment == "during" else f"worker.{moment}_settle=kill")
    await fleet.joined(1)
    retry = dt.Retry(max_attempts=attempts, first_delay="100ms")
    failing = dt.NewJob("work", {"seconds": 0.3, "fails": 9}, retry=retry)
    (job,) = await fleet.app.submit_many([failing])
    await fleet.recorded("start", 1)
    await _killed(fleet, doomed, job.id, moment)
    fleet.spawn()
    await fleet.finished([job])
    assert (job.state, job.failures) == ("dead", attempts)
    assert job.attempt == attempts + (moment == "before")
    assert [dead.id for dead in await fleet.app.jobs(state="dead")] == [job.id]
    fleet.check_starts()


@pytest.mark.parametrize("moment", ["after_expire", "before_settle", "during"])
async def test_lost_job_runs_once_more_if_the_reaper_is_killed_too(fleet: Fleet, moment: str) -> None:
    worker = fleet.spawn()
    await fleet.joined(1)
    job = await fleet.app.submit("linger")
    await fleet.recorded("start", 1)
    async with _locked(fleet, job.id) if moment == "during" else contextlib.nullcontext():
        worker.kill()
        reaper = {"WORKER_ROLES": "planner"}
        doomed = fleet.spawn("" if moment == "during" else f"reaper.{moment}=kill", environment=reaper)
        await _killed(fleet, doomed, job.id, moment, locked=True)
    fleet.spawn()
    await fleet.finished([job])
    assert (job.state, job.attempt, job.failures) == ("succeeded", 2, 0)
    fleet.check_starts()


async def _killed(
    fleet: Fleet, doomed: subprocess.Popen[bytes], job_id: UUID, moment: str, locked: bool = False
) -> None:
    """Wait until a failpoint has killed the process; or kill it while its statement waits for a lock, so that
    the server executes the statement for a process that is gone."""
    if moment == "during":
        async with contextlib.nullcontext() if locked else _locked(fleet, job_id):
            await fleet.until(lambda: _is_blocked(fleet), "the process to wait for the lock")
            doomed.kill()
    await asyncio.to_thread(doomed.wait)
    assert doomed.returncode == -signal.SIGKILL, fleet.logs()


@contextlib.asynccontextmanager
async def _locked(fleet: Fleet, job_id: UUID) -> AsyncIterator[None]:
    if not fleet.store.startswith("postgresql"):
        pytest.skip("only a server goes on with a statement whose process is gone")
    async with await psycopg.AsyncConnection.connect(fleet.store) as connection:
        await connection.execute("SELECT FROM duetime.jobs WHERE id = %s FOR UPDATE", [job_id])
        yield


async def _is_blocked(fleet: Fleet) -> bool:
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with await psycopg.AsyncConnection.connect(fleet.store) as connection:
        row = await (await connection.execute(blocked)).fetchone()
        return row is not None and row[0] > 0

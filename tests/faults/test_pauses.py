"""Paused workers and blocked event loops."""

from __future__ import annotations

import asyncio
import signal

import pytest

import duetime as dt
from tests.faults.fleet import LEASE, SHORT_LEASE, Fleet

pytestmark = pytest.mark.slow
RUNNING = 40  # jobs of two workers


async def test_result_of_a_worker_paused_beyond_its_lease_is_refused(fleet: Fleet) -> None:
    """The worker is paused in the middle of a job. When it continues and finishes, its result does not
    count."""
    fleet.lease = SHORT_LEASE
    paused = fleet.spawn()
    await fleet.joined(1)
    job = await fleet.app.submit("work", seconds=4.0)
    await fleet.recorded("start", 1)
    await fleet.pause(paused)
    fleet.lease = LEASE
    fleet.spawn()
    await fleet.finished([job])
    assert (job.state, job.attempt, job.result) == ("succeeded", 2, 2)
    paused.send_signal(signal.SIGCONT)
    await fleet.joined(2)  # it joins again under a new id
    again = await fleet.app.submit("work")
    await fleet.finished([again])
    await job.refresh()
    assert (job.state, job.attempt, job.result) == ("succeeded", 2, 2), (
        "the paused worker changed a final state"
    )
    fleet.check_starts()


async def test_pause_shorter_than_the_lease_changes_nothing(fleet: Fleet) -> None:
    fleet.lease = "15s"
    worker = fleet.spawn()
    fleet.spawn()
    await fleet.joined(2)
    jobs = [await fleet.app.submit("work", seconds=3.0) for _ in range(4)]
    await fleet.recorded("start", 4)
    await fleet.pause(worker)
    await asyncio.sleep(3.0)  # the pause itself: a fifth of the lease
    worker.send_signal(signal.SIGCONT)
    await fleet.finished(jobs)
    assert [job.attempt for job in jobs] == [1, 1, 1, 1]


async def test_fleet_paused_beyond_its_leases_completes_each_job_once(fleet: Fleet) -> None:
    """B10. A machine that sleeps: all nodes are paused and continue at the same time."""
    fleet.lease = SHORT_LEASE
    workers = [fleet.spawn(), fleet.spawn()]
    await fleet.joined(2)
    jobs = await fleet.app.submit_many([dt.NewJob("work", {"seconds": 0.5}) for _ in range(100)])
    await fleet.recorded("start", 20)
    for worker in workers:
        await fleet.pause(worker)
    await asyncio.sleep(3.0)  # the pause itself: longer than the lease
    for worker in workers:
        worker.send_signal(signal.SIGCONT)
    await fleet.finished(jobs)
    assert {(job.state, job.failures) for job in jobs} == {("succeeded", 0)}
    assert all(worker.poll() is None for worker in workers), fleet.logs()
    ends = {(event["job"], event["attempt"]) for event in fleet.seen("effect")}
    assert all((str(job.id), job.attempt) in ends for job in jobs)
    again = [starts for starts in fleet.starts().values() if len(starts) > 1]
    assert len(again) <= RUNNING, "only what ran during the pause runs again"
    fleet.check_starts()


async def test_task_that_blocks_the_loop_keeps_its_lease(fleet: Fleet) -> None:
    """The heartbeat has its own thread and connection, so no other node takes the job."""
    fleet.lease = "6s"
    fleet.spawn()
    fleet.spawn()
    await fleet.joined(2)
    job = await fleet.app.submit("block", seconds=9.0)
    await fleet.finished([job])
    assert (job.state, job.attempt) == ("succeeded", 1)
    assert len(fleet.seen("start")) == 1

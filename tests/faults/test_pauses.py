"""Pauses and zombies (reliability 2.B), blocked event loops (G1), wrong clocks (E1)."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.faults.fleet import LEASE, SHORT_LEASE, Fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


async def test_a_zombie_is_refused(fleet: Fleet) -> None:
    """B1, G4: stopped beyond its lease in the middle of a job, it wakes and finishes; its completion does not count."""
    fleet.lease = SHORT_LEASE
    sleeper = fleet.spawn()
    await fleet.joined(1)
    job = await fleet.app.submit("work", seconds=4.0)
    await fleet.until(lambda: _seen(fleet, "start", 1), "the job to start")
    await fleet.pause(sleeper)
    fleet.lease = LEASE
    fleet.spawn()
    await fleet.finished([job])
    assert (job.state, job.attempt, job.result) == ("succeeded", 2, 2)
    sleeper.send_signal(signal.SIGCONT)
    await fleet.joined(2)  # it joins again under a new id
    again = await fleet.app.submit("work")
    await fleet.finished([again])
    await job.refresh()
    assert (job.state, job.attempt, job.result) == ("succeeded", 2, 2), "the zombie changed a final state"
    fleet.check_promises()


async def test_a_short_pause_changes_nothing(fleet: Fleet) -> None:
    """B2."""
    fleet.lease = "15s"
    worker = fleet.spawn()
    fleet.spawn()
    await fleet.joined(2)
    jobs = [await fleet.app.submit("work", seconds=3.0) for _ in range(4)]
    await fleet.until(lambda: _seen(fleet, "start", 4), "the jobs to start")
    await fleet.pause(worker)
    await asyncio.sleep(3.0)  # the pause itself: a fifth of the lease
    worker.send_signal(signal.SIGCONT)
    await fleet.finished(jobs)
    assert [job.attempt for job in jobs] == [1, 1, 1, 1]


async def test_a_task_that_blocks_the_loop_keeps_its_lease(fleet: Fleet) -> None:
    """G1: the heart has its own thread and connection, so nobody takes the job away."""
    fleet.lease = "6s"
    fleet.spawn()
    fleet.spawn()
    await fleet.joined(2)
    job = await fleet.app.submit("block", seconds=9.0)
    await fleet.finished([job])
    assert (job.state, job.attempt) == ("succeeded", 1)
    assert len(fleet.seen("start")) == 1


async def _seen(fleet: Fleet, kind: str, times: int) -> bool:
    return len(fleet.seen(kind)) >= times

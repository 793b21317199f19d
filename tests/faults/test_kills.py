"""SIGKILL at every step (reliability 2.A): nothing lost, nothing completed twice, and doubles only where the dead process had begun."""

from __future__ import annotations

import asyncio
import signal

import pytest

import duetime as dt
from tests.faults.fleet import LEASE, SHORT_LEASE, Fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

# A3, A5, A8, A10, A12, A13, A14: each names the step before which, or after which, the process dies.
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


@pytest.mark.parametrize("step", STEPS)
async def test_a_process_dies_at_a_step(fleet: Fleet, step: str) -> None:
    fleet.lease = SHORT_LEASE  # what it planned is planned on by others when this ends
    doomed = fleet.spawn(f"{step}=kill@2")
    await fleet.joined(1)
    await fleet.app.schedule("tick", "work", dt.Every("1s"))
    jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 0.05}) for _ in range(JOBS)])
    later = await fleet.app.submit_many([dt.NewJob("work", payload={}, delay="1500ms") for _ in range(JOBS)])
    await asyncio.to_thread(doomed.wait)
    assert doomed.returncode == -signal.SIGKILL, fleet.logs()

    fleet.lease = LEASE
    fleet.spawn()
    await fleet.finished([*jobs, *later])
    await _check_ledger(fleet)

    for job in [*jobs, *later]:
        assert job.state == "succeeded", job.error
        assert job.failures == 0, "a dead worker is not the task's failure"
    fleet.check_promises()
    doubles = {job: starts for job, starts in fleet.starts().items() if len(starts) > 1}
    for starts in doubles.values():
        assert starts[0]["pid"] == doomed.pid, "a double start that no fault explains (I12)"


async def _check_ledger(fleet: Fleet) -> None:
    """I10: from the first fire to the pause, one job for every second, each of them done."""

    async def some_done() -> bool:
        return sum(fire.state.final for fire in await fleet.app.jobs(schedule="tick", limit=200)) >= 3

    await fleet.until(some_done, "three fires")
    await fleet.app.pause("tick")

    async def all_done() -> bool:
        return all(fire.state.final for fire in await fleet.app.jobs(schedule="tick", limit=200))

    await fleet.until(all_done, "every fire to be done")
    fires = sorted(await fleet.app.jobs(schedule="tick", limit=200), key=lambda fire: fire.fire_time)
    seconds = [int(fire.fire_time.timestamp()) for fire in fires]
    assert seconds == list(range(seconds[0], seconds[0] + len(seconds))), "a fire is missing or doubled"
    assert {str(fire.state) for fire in fires} <= {"succeeded", "skipped"}, fires


async def test_in_flight_work_restarts_long_before_the_lease_ends(fleet: Fleet) -> None:
    """X7, A9: the survivor learns of the death from the store, at once; the lease would have lasted for an hour."""
    fleet.lease = "1h"
    workers = {worker.pid: worker for worker in (fleet.spawn(), fleet.spawn())}
    await fleet.joined(2)
    job = await fleet.app.submit("linger")
    await fleet.until(lambda: _started(fleet, 1), "the job to start")
    workers[fleet.seen("start")[0]["pid"]].kill()
    await fleet.finished([job])
    assert (job.state, job.attempt, job.failures) == ("succeeded", 2, 0)
    fleet.check_promises()


async def _started(fleet: Fleet, times: int) -> bool:
    return len(fleet.seen("start")) >= times


async def test_whole_fleet_killed_and_restarted(fleet: Fleet) -> None:
    """A16: the power cut."""
    first = [fleet.spawn(), fleet.spawn()]
    await fleet.joined(2)
    jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 0.2}) for _ in range(100)])
    await fleet.until(lambda: _started(fleet, 20), "work to be under way")
    for worker in first:
        worker.kill()
    fleet.spawn()
    await fleet.finished(jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    fleet.check_promises()


async def test_a_job_that_kills_its_worker_is_poison(fleet: Fleet) -> None:
    """A18: bounded, and innocent neighbours are not charged."""
    poison = await fleet.app.submit("die")
    jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 0.01}) for _ in range(50)])

    async def settled() -> bool:
        if all(worker.poll() is not None for worker in fleet.workers):
            fleet.spawn()
        return (await poison.refresh()).state.final

    await fleet.until(settled, "the poison to be found")
    assert poison.state == "dead"
    assert "poison" in (poison.error or "")
    fleet.spawn()
    await fleet.finished(jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    assert {job.failures for job in jobs} == {0}


async def test_orderly_stop_under_load_loses_no_time(fleet: Fleet) -> None:
    """J5: unstarted work is claimable at once, not after the lease; running work finishes."""
    fleet.lease = "1h"
    first = fleet.spawn()
    await fleet.joined(1)
    jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 0.3}) for _ in range(100)])
    await fleet.until(lambda: _started(fleet, 5), "work to be under way")
    fleet.spawn()
    await fleet.joined(2)
    first.terminate()
    assert await asyncio.to_thread(first.wait) == 0, fleet.logs()
    await fleet.finished(jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    assert all(len(starts) == 1 for starts in fleet.starts().values()), "an orderly stop repeats nothing"
    fleet.check_promises()

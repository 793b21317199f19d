"""A job that kills its worker is found. Other jobs on that worker are not blamed, even long ones, and neither
are jobs whose worker is killed from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

import duetime as dt
from tests.faults.fleet import Fleet

pytestmark = pytest.mark.slow

OTHERS = 20
LONG = 0.5  # seconds: they still run when the killer starts


@pytest.mark.parametrize("priority", [5, 9], ids=["the killer starts last", "the killer starts first"])
async def test_long_jobs_next_to_a_killer_succeed(tmp_path: Path, priority: int) -> None:
    """The killer causes every crash, so it is at least as suspect as any other job. Suspects start alone, and
    so does the killer."""
    async with Fleet(f"sqlite:///{tmp_path}/fleet.db", tmp_path) as fleet:
        others = await fleet.app.submit_many(
            [dt.NewJob("work", payload={"seconds": LONG}) for _ in range(OTHERS)]
        )
        (killer,) = await fleet.app.submit_many([dt.NewJob("die", priority=priority)])
        await _restart_until_final(fleet, [killer, *others])
        assert killer.state == "dead"
        assert "poison" in (killer.error or "")
        assert {str(job.id): job.error for job in others if job.state != "succeeded"} == {}
        assert {job.failures for job in others} == {0}
        assert len([worker for worker in fleet.workers if worker.poll() is not None]) == 3, (
            "a killer may kill three workers, not more"
        )
        fleet.check_starts()


async def test_innocent_job_survives_six_kills_of_its_worker(fleet: Fleet) -> None:
    """Two losses are free, and the default policy allows five in quarantine."""
    kills = 6
    job = await fleet.app.submit("linger", attempts=kills)
    for number in range(1, kills + 1):
        worker = fleet.spawn()
        await fleet.recorded("start", number)
        worker.kill()
    fleet.spawn()
    await fleet.finished([job])
    assert (job.state, job.attempt, job.failures) == ("succeeded", kills + 1, 0), job.error
    fleet.check_starts()


async def _restart_until_final(fleet: Fleet, jobs: list[dt.JobHandle]) -> None:
    """Start a new worker whenever the last one has ended, as a supervisor does."""
    for job in jobs:

        async def final(job: dt.JobHandle = job) -> bool:
            if all(worker.poll() is not None for worker in fleet.workers):
                fleet.spawn()
            return (await job.refresh()).state.final

        await fleet.until(final, f"{job} to finish")

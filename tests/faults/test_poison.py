"""A18: a job that takes its worker down with it is found, and those that ran beside it are not charged, however long they run."""

from __future__ import annotations

from pathlib import Path

import pytest

import duetime as dt
from tests.faults.fleet import Fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

INNOCENTS = 20
LONG = 0.5  # seconds: those that have started are under way when the killer strikes


@pytest.mark.parametrize("priority", [5, 9], ids=["the killer starts last", "the killer starts first"])
async def test_long_runners_beside_a_killer_are_spared(tmp_path: Path, priority: int) -> None:
    """Every death is the killer's, so it is always at least as suspect as anybody beside it: when they start alone, it does, too."""
    async with Fleet(f"sqlite:///{tmp_path}/fleet.db", tmp_path) as fleet:
        innocents = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": LONG}) for _ in range(INNOCENTS)])
        (killer,) = await fleet.app.submit_many([dt.NewJob("die", priority=priority)])
        await _restart_until_final(fleet, [killer, *innocents])
        assert killer.state == "dead"
        assert "poison" in (killer.error or "")
        assert {str(job.id): job.error for job in innocents if job.state != "succeeded"} == {}
        assert {job.failures for job in innocents} == {0}
        assert len([worker for worker in fleet.workers if worker.poll() is not None]) == 3, "a killer takes three workers down, and no more"
        fleet.check_promises()


async def _restart_until_final(fleet: Fleet, jobs: list[dt.JobHandle]) -> None:
    """As a supervisor would: whenever the worker has gone, the next one starts."""
    for job in jobs:

        async def final(job: dt.JobHandle = job) -> bool:
            if all(worker.poll() is not None for worker in fleet.workers):
                fleet.spawn()
            return (await job.refresh()).state.final

        await fleet.until(final, f"{job} to finish")

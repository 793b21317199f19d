"""Isolated tasks on an app that runs: timeouts, cancelling and shutdown end the whole process group, crashes
end nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from tests.app.waiting import eventually
from tests.unit.invokers import chores
from tests.unit.invokers.families import alive, family

pytestmark = (
    pytest.mark.slow
)  # each starts processes; tests/unit/invokers/test_children.py has the quick ones
ONCE = dt.Retry(max_attempts=1)


async def test_isolated_task_returns_results_and_errors(app: dt.App) -> None:
    work = app.task("work", isolate=dt.Isolation(memory="1GB"))(chores.plain)
    async with app.running():
        job = await work.submit(day="2026-11-15", n=3)
        await job.wait("60s")
        assert job.state == "succeeded", job.error
        assert job.result["pid"] != os.getpid()
        assert (job.result["year"], job.result["once"], job.result["after"]) == (
            2026,
            [True, False],
            {"at": 3},
        )


@pytest.mark.parametrize("chore", [chores.tidy, chores.stubborn])
async def test_a_timeout_ends_the_whole_group(memory_app: dt.App, chore: Any, tmp_path: Path) -> None:
    # Long enough for its processes to begin.
    work = memory_app.task("work", isolate=True, timeout="8s", retry=ONCE)(chore)
    async with memory_app.running():
        job = await work.submit(notes=str(tmp_path / "notes"))
        pids = await family(tmp_path / "notes")
        await job.wait("60s")
        assert (job.state, job.error) == ("dead", "timed out")
        assert not any(alive(pid) for pid in pids)


async def test_cancelling_ends_the_whole_group(memory_app: dt.App, tmp_path: Path) -> None:
    work = memory_app.task("work", isolate=True)(chores.stubborn)
    async with memory_app.running():
        job = await work.submit(notes=str(tmp_path / "notes"))
        pids = await family(tmp_path / "notes")
        await job.cancel()
        await job.wait("60s")
        assert job.state == "cancelled"
        assert not any(alive(pid) for pid in pids)


async def test_shutting_down_gives_the_job_back(memory_app: dt.App, tmp_path: Path) -> None:
    work = memory_app.task("work", isolate=True)(chores.stubborn)
    await memory_app.open()
    async with memory_app.running(grace="10ms"):
        job = await work.submit(notes=str(tmp_path / "notes"))
        pids = await family(tmp_path / "notes")
    await job.refresh()
    assert (job.state, job.failures) == ("pending", 0)
    assert not any(alive(pid) for pid in pids)
    await memory_app.close()


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("vanish", "ProcessDied: the process ended with status 3 before the task was done"),
        ("killed", "ProcessDied: the process was killed by signal 9 (SIGKILL): out of memory?"),
        ("hiccup", "no luck (7)"),
    ],
)
async def test_a_crash_is_a_failure_of_the_attempt_and_of_nothing_else(
    memory_app: dt.App, how: str, error: str
) -> None:
    work = memory_app.task("work", isolate=True, retry=ONCE)(chores.ending)
    async with memory_app.running():
        jobs = [await work.submit(how=how), await work.submit(how="well")]
        for job in jobs:
            await job.wait("60s")
        assert jobs[0].error is not None
        assert (jobs[0].state, jobs[0].failures) == ("dead", 1)
        assert error in jobs[0].error
        assert jobs[1].result == "well"


async def test_error_types_are_known_to_the_retry_policy(memory_app: dt.App) -> None:
    """`give_up_on` sees the class the task raised in its own process."""
    retry = dt.Retry(max_attempts=5, first_delay="1ms", give_up_on=(chores.Hiccup,))
    work = memory_app.task("work", isolate=True, retry=retry)(chores.ending)
    async with memory_app.running():
        job = await work.submit(how="hiccup")
        await job.wait("60s")
        assert (job.state, job.attempt) == ("dead", 1)


async def test_a_snooze_comes_through(memory_app: dt.App) -> None:
    work = memory_app.task("work", isolate=True)(chores.ending)
    async with memory_app.running():
        job = await work.submit(how="cancel")
        await job.wait("60s")
        assert (job.state, job.error) == ("cancelled", "done already")


@pytest.mark.parametrize(("how", "state"), [("half a character", "cancelled"), ("unwritable", "dead")])
async def test_outcome_of_an_isolated_task_survives_unwritable_text(
    memory_app: dt.App, how: str, state: str
) -> None:
    work = memory_app.task("work", isolate=True, retry=ONCE)(chores.ending)
    async with memory_app.running():
        job = await work.submit(how=how)
        await job.wait("60s")
        assert job.state == state
        assert "no file ?.csv" in (job.error or "")


def test_function_that_a_new_process_cannot_import_is_refused(memory_app: dt.App) -> None:
    def local() -> None: ...

    with pytest.raises(dt.InvalidInput, match="define it at the top level of a module"):
        memory_app.task("work", isolate=True)(local)


SCRIPT = """
import os, signal, sys, time
import duetime as dt

app = dt.App(sys.argv[1])

@app.task("work", isolate=True)
def work(path: str) -> None:
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)

if __name__ == "__main__":
    app.sync.migrate()
    app.sync.submit("work", path=sys.argv[2])
    app.sync.close()
    app.run(grace="10ms")
    print("over")
"""


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
async def test_under_run_the_processes_end_with_the_worker(how: str, tmp_path: Path) -> None:
    """The task is found in the script that was started; uvloop is in use where it is installed."""
    (tmp_path / "script.py").write_text(SCRIPT)
    notes = tmp_path / "notes"
    command = [sys.executable, str(tmp_path / "script.py"), f"sqlite:///{tmp_path}/duetime.db", str(notes)]
    worker = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    async def begun() -> bool:
        return notes.exists() and bool(notes.read_text())

    await eventually(begun)
    child = int(notes.read_text())
    worker.send_signal(signal.Signals[how])
    said, complained = await asyncio.wait_for(worker.communicate(), 60)
    if how == "SIGTERM":
        assert (worker.returncode, said) == (0, b"over\n"), complained

    async def gone() -> bool:
        return not alive(child)

    await eventually(gone)

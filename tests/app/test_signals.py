"""`app.run()` in its own process: the first signal lets jobs finish, the second ends it immediately."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

import duetime as dt

pytestmark = pytest.mark.slow

PROGRAM = """
import asyncio, sys
import duetime as dt

app = dt.App(sys.argv[1])

@app.task("slow")
async def slow(seconds: float) -> str:
    print("started", flush=True)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        print("interrupted", flush=True)
        raise
    print("finished", flush=True)
    return "done"

@app.task("stubborn")
async def stubborn() -> None:
    print("started", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

app.run(grace="30s")
print("ended", flush=True)
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/duetime.db"


@pytest.fixture
def submitted(url: str) -> Iterator[dt.App]:
    app = dt.App(url)
    yield app
    app.sync.close()


def start(url: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def outcome(process: subprocess.Popen[str]) -> tuple[list[str], int]:
    try:
        text, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert errors == ""
    return text.split(), process.returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_running_jobs_finish(
    submitted: dt.App, url: str, number: signal.Signals
) -> None:
    job = submitted.sync.submit("slow", seconds=0.5)
    process = start(url)
    process.send_signal(number)
    assert outcome(process) == (["finished", "ended"], 0)
    assert (job.refresh().state, job.result, job.attempt) == ("succeeded", "done", 1)


def test_the_second_signal_gives_them_back(submitted: dt.App, url: str) -> None:
    job = submitted.sync.submit("slow", seconds=3600)
    process = start(url)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert outcome(process) == (["interrupted", "ended"], 0)
    assert (job.refresh().state, job.failures) == ("pending", 0)


def test_long_wait_for_running_jobs_is_announced(submitted: dt.App, url: str) -> None:
    submitted.sync.submit("slow", seconds=3600)
    process = start(url)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == (
        "stopping: 1 running job has 30s to finish; a second SIGINT or SIGTERM ends the wait\n"
    )
    process.send_signal(signal.SIGINT)
    assert outcome(process) == (["interrupted", "ended"], 0)


def test_task_that_swallows_its_cancellation_does_not_keep_the_process(submitted: dt.App, url: str) -> None:
    job = submitted.sync.submit("stubborn")
    process = start(url)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    try:
        text, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (text, process.returncode) == ("ended\n", 0)
    assert f"task stubborn of job {job.id} ignores its cancellation: the node ends without it" in errors
    assert errors.count("ignores its cancellation") == 1
    assert 'File "<string>", line 23, in stubborn' in errors


def test_second_signal_ends_the_wait_for_a_task_that_ignores_it(submitted: dt.App, url: str) -> None:
    job = submitted.sync.submit("stubborn")
    process = start(url)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("stopping: 1 running job has 30s to finish")
    process.send_signal(signal.SIGTERM)
    began = monotonic()
    try:
        text, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (text, process.returncode) == ("ended\n", 0)
    assert "ends the wait" not in errors
    assert monotonic() - began < 20  # of the 28 seconds that are left
    asyncio.run(runs_again(url))
    assert (job.refresh().state, job.attempt) == ("succeeded", 2)


async def runs_again(url: str) -> None:
    """Another node takes the job that was given up."""
    app, ran = dt.App(url), asyncio.Event()

    @app.task("stubborn")
    async def willing() -> None:
        ran.set()

    async with app.running():
        await asyncio.wait_for(ran.wait(), 60)

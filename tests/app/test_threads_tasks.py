"""Plain functions as tasks: timeout, cancel and shutdown interrupt them, and they never block the worker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.invokers.threads import Threads
from tests.app.waiting import soon

pytestmark = pytest.mark.slow


class Busy:
    """A function that ends only when it is interrupted, and notes it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.begun = asyncio.Event()
        self.ended = threading.Event()

    def work(self) -> None:
        self._loop.call_soon_threadsafe(self.begun.set)
        try:
            while True:
                time.sleep(0.001)
        finally:
            self.ended.set()


async def test_a_timeout_interrupts_and_the_next_attempt_does_not_run_beside_it(
    memory_app: dt.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "duetime.app.app.Threads", partial(Threads, interrupt_timeout=60.0)
    )  # none is to be left behind on a busy machine
    running, most = 0, 0

    @memory_app.task("work", timeout="50ms", retry=dt.Retry(max_attempts=3, first_delay="1ms", jitter=False))
    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            while True:
                time.sleep(0.001)
        finally:
            running -= 1

    async with memory_app.running():
        job = await work.submit()
        await job.wait("60s")
        assert (job.state, job.attempt, job.error) == ("dead", 3, "timed out")
        assert (running, most) == (0, 1)


async def test_cancelling_interrupts_the_thread(memory_app: dt.App) -> None:
    busy = Busy()
    memory_app.task("work")(busy.work)
    async with memory_app.running():
        job = await memory_app.submit("work")
        await soon(busy.begun)
        await job.cancel()
        await job.wait("60s")
        assert job.state == "cancelled"
        assert await asyncio.to_thread(busy.ended.wait, 60)


async def test_shutting_down_interrupts_and_gives_the_job_back(memory_app: dt.App) -> None:
    busy = Busy()
    memory_app.task("work")(busy.work)
    await memory_app.open()
    async with memory_app.running(grace="10ms"):
        job = await memory_app.submit("work")
        await soon(busy.begun)
    await job.refresh()
    assert (job.state, job.failures) == ("pending", 0)
    assert await asyncio.to_thread(busy.ended.wait, 60)
    await memory_app.close()


async def test_threads_that_hang_do_not_use_up_the_slots(memory_app: dt.App) -> None:
    release = threading.Event()

    @memory_app.task("hang", timeout="20ms", retry=dt.Retry(max_attempts=1))
    def hang() -> None:
        release.wait(120)

    @memory_app.task("work")
    def work() -> str:
        return "done"

    try:
        async with memory_app.running(concurrency=2):
            hung = [await hang.submit() for _ in range(4)]
            for job in hung:
                await job.wait("60s")
                assert job.error == "timed out"
            done = await work.submit()
            await done.wait("60s")
            assert done.result == "done"
    finally:
        release.set()


async def test_context_calls_block_in_a_thread(app: dt.App) -> None:
    @app.task("work")
    def work(ctx: dt.Context) -> list[Any]:
        ctx.sync.checkpoint({"page": 3})
        ctx.sync.progress(1, 2)
        return [ctx.last_checkpoint, ctx.sync.once("a"), ctx.sync.once("a"), ctx.stop_requested]

    async with app.running():
        job = await work.submit()
        await job.wait("60s")
        assert job.result == [{"page": 3}, True, False, False], job.error


SCRIPT = """
import os, signal, sys, threading
import duetime as dt

app = dt.App(sys.argv[1])

@app.task("hang")
def hang():
    sys.stdout.write("hanging\\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait()

app.sync.migrate()
app.sync.submit("hang")
app.sync.close()
app.run(grace="10ms")
sys.stdout.write("over\\n")
"""


def test_a_thread_that_hangs_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, f"sqlite:///{tmp_path}/duetime.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "hanging\nover\n"), done.stderr


@pytest.mark.parametrize("call", ["checkpoint", "once"])
async def test_call_that_cannot_be_awaited_is_refused(memory_app: dt.App, call: str) -> None:
    """In a plain function the coroutine would be dropped, and the job succeed without a checkpoint."""

    @memory_app.task("plain", retry=dt.Retry(max_attempts=1))
    def plain(ctx: dt.Context) -> None:
        getattr(ctx, call)("value")

    async with memory_app.running():
        job = await (await plain.submit()).wait("60s")
    assert job.state == "dead"
    assert f"ctx.sync.{call}" in str(job.error)

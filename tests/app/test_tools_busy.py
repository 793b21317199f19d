"""Floods, busy machines and tasks that block: no queue starves, and the log names the cause."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import duetime as dt
from tests.app.waiting import eventually

pytestmark = pytest.mark.slow

FLOOD = 3_000


async def _flood(app: dt.App, priority: int) -> None:
    for _ in range(3):
        await app.submit_many([dt.NewJob("work", priority=priority) for _ in range(FLOOD // 3)])


async def test_a_job_of_low_priority_runs_during_a_flood_of_urgent_ones(app: dt.App) -> None:
    started: list[int] = []

    @app.task("work")
    async def work() -> None:
        started.append(9)
        await asyncio.sleep(0.005)

    @app.task("low")
    async def low() -> int:
        return len(started)

    await app.open()
    try:
        await _flood(app, priority=9)
        job = await low.submit(priority=0)
        async with app.running(concurrency=10):
            await job.wait("60s")
            assert job.result < FLOOD * 2 // 3, "it waited until the flood was nearly over"
    finally:
        await app.close()


async def test_an_urgent_job_passes_a_flood_of_low_ones(app: dt.App) -> None:
    started: list[int] = []

    @app.task("work")
    async def work() -> None:
        started.append(0)
        await asyncio.sleep(0.005)

    @app.task("urgent")
    async def urgent() -> int:
        return len(started)

    await app.open()
    try:
        await _flood(app, priority=0)
        async with app.running(concurrency=10):
            await eventually(lambda: _at_least(started, 50))
            job = await urgent.submit(priority=9)
            before = len(started)
            await job.wait("60s")
            assert job.result - before < FLOOD // 2, "it waited for the flood"
    finally:
        await app.close()


async def _at_least(started: list[int], count: int) -> bool:
    return len(started) >= count


async def test_node_claims_nothing_while_the_machine_is_busy(
    memory_app: dt.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = 3.0
    memory_app.clock.load = lambda: load
    ran = asyncio.Event()

    @memory_app.task("work")
    async def work() -> None:
        ran.set()

    async with memory_app.running(max_load=1.5):
        job = await work.submit()
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not ran.is_set()
        load = 1.0
        await job.wait("60s")


@contextmanager
def recorded() -> Iterator[list[str]]:
    """What the logger says, heard on whichever thread says it."""
    lines: list[str] = []

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler = Recorder(logging.ERROR)
    logging.getLogger("duetime").addHandler(handler)
    try:
        yield lines
    finally:
        logging.getLogger("duetime").removeHandler(handler)


async def test_a_task_that_blocks_the_event_loop_is_named_and_keeps_its_lease(app: dt.App) -> None:
    """Its lease would be over, were it not for the heart's own thread."""

    @app.task("blocking")
    async def blocking(ctx: dt.Context) -> int:
        _compute_for_too_long()
        return ctx.attempt

    with recorded() as lines:
        async with app.running(lease="2500ms"):
            job = await (await blocking.submit()).wait("60s")
    assert (job.state, job.result) == ("succeeded", 1)
    [told] = [line for line in lines if "has blocked this node" in line]
    assert f"task 'blocking' (job {job.id})" in told
    assert "_compute_for_too_long" in told


def _compute_for_too_long() -> None:
    end = time.monotonic() + 3.2  # less than the time after which a verb of the store gives up
    while time.monotonic() < end:
        time.sleep(0.05)

"""A store that crashes and starts again, three times, under load: all acknowledged jobs run, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import duetime as dt
from tests.faults.fleet import Fleet

CRASHES = 3


async def survive_crashes(fleet: Fleet, crash: Callable[[], None]) -> None:
    """`crash` kills the store and starts it again. The worker processes reconnect."""
    workers = [fleet.spawn(), fleet.spawn()]
    await fleet.joined(2)
    await fleet.app.schedule("tick", "work", dt.Every("500ms"), missed=dt.Missed("all"))
    acknowledged: list[dt.JobHandle] = []
    stop = asyncio.Event()
    client = asyncio.create_task(_submit(fleet, acknowledged, stop))
    for _ in range(CRASHES):
        await more_acknowledged(fleet, acknowledged)
        await asyncio.to_thread(crash)
    await more_acknowledged(fleet, acknowledged)
    stop.set()
    await client
    await fleet.finished(acknowledged)
    assert {job.state for job in acknowledged} == {"succeeded"}
    assert all(worker.poll() is None for worker in workers), fleet.logs()
    fleet.check_starts()
    await fleet.check_fires("tick", 0.5)
    assert "Traceback" not in fleet.logs()


async def more_acknowledged(fleet: Fleet, acknowledged: list[dt.JobHandle]) -> None:
    count = len(acknowledged) + 20

    async def enough() -> bool:
        return len(acknowledged) >= count

    await fleet.until(enough, "20 more jobs to be acknowledged")


async def _submit(fleet: Fleet, acknowledged: list[dt.JobHandle], stop: asyncio.Event) -> None:
    while not stop.is_set():
        try:
            acknowledged.append(await fleet.app.submit("work", seconds=0.02))
        except dt.StoreUnavailable:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.01)

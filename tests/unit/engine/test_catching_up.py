"""A change of a schedule while no planner lives: what fell due before the change is not forgotten (I10, I-1,
I-3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from duetime.engine.node.timer import NodeClock
from duetime.engine.submit.build import NO_DEFAULTS
from duetime.engine.submit.commands import Commands
from duetime.engine.submit.schedules import schedule_draft
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, Micros
from duetime.model.job import JobFilter
from duetime.model.schedule import Missed, ScheduleDraft
from duetime.model.when import Every
from duetime.stores.memory import MemoryStore

BEGAN: Micros = 1_000_000 * SECOND
Change = Callable[[Commands, ScheduleDraft], Awaitable[object]]


async def pause(commands: Commands, draft: ScheduleDraft) -> object:
    return await commands.pause_schedule("default", "tick", None)


async def remove(commands: Commands, draft: ScheduleDraft) -> object:
    return await commands.remove_schedule("default", "tick")


async def edit(commands: Commands, draft: ScheduleDraft) -> object:
    return await commands.put_schedule(replace(draft, priority=9), replacing=True)


@pytest.mark.parametrize("change", [pause, remove, edit])
async def test_fires_due_before_a_change_become_jobs(change: Change) -> None:
    now = BEGAN
    store = MemoryStore(lambda: now)
    commands = Commands(store, NodeClock(monotonic=lambda: now), Ids())
    draft = schedule_draft(
        Ids(), "default", "tick", "task", Every("1s"), NO_DEFAULTS, now, {"missed": Missed("all")}
    )
    await commands.put_schedule(draft, replacing=False)
    now += 3 * SECOND + SECOND // 2
    await change(commands, draft)
    stored = await store.list_jobs(JobFilter("default"), 10)
    assert sorted((job.fire_time - BEGAN) // SECOND for job in stored) == [1, 2, 3]

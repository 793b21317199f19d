"""After an outage everything missed is written, in portions a store can take."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from duetime.engine.node.timer import NodeClock
from duetime.engine.plan.planner import PORTION, Planner
from duetime.engine.submit.build import NO_DEFAULTS
from duetime.engine.submit.commands import Commands
from duetime.engine.submit.schedules import schedule_draft
from duetime.model.ids import EVERY_SEGMENT, Ids
from duetime.model.instant import SECOND, Micros
from duetime.model.schedule import MAX_FIRES_PER_STEP, Firing, Missed
from duetime.model.when import Every
from duetime.observer import Observers
from duetime.store import DueSchedules
from duetime.stores.memory import MemoryStore
from duetime.testing.conformance.drafts import put_schedule

NOW: Micros = 1_000_000 * SECOND
LOOKAHEAD = 10 * SECOND
SCHEDULES, MISSED = 6, 900


class Scales(MemoryStore):
    """Records how many fires each call writes."""

    def __init__(self) -> None:
        super().__init__(lambda: NOW)
        self.weights: list[int] = []

    async def fire(self, firings: Sequence[Firing]) -> int:
        self.weights.append(sum(len(firing.fires) for firing in firings))
        return await super().fire(firings)


async def after_an_outage() -> Scales:
    store = Scales()
    for number in range(SCHEDULES):
        draft = schedule_draft(
            Ids(), "default", f"{number}", "task", Every("1s"), NO_DEFAULTS, NOW, {"missed": Missed("skip")}
        )
        await put_schedule(store, draft, NOW - MISSED * SECOND, 0)
    return store


async def test_what_many_schedules_have_missed_is_not_written_all_at_once() -> None:
    store = await after_an_outage()
    planner = Planner(store, NodeClock(monotonic=lambda: NOW), lambda: EVERY_SEGMENT, LOOKAHEAD, Observers())
    await planner.run_once()
    assert sum(store.weights) == SCHEDULES * (MISSED + 1 + LOOKAHEAD // SECOND)
    assert max(store.weights) < PORTION + MAX_FIRES_PER_STEP
    assert not await store.list_schedules(DueSchedules(EVERY_SEGMENT, NOW), 1)


async def test_nor_before_all_of_them_are_changed_together() -> None:
    store = await after_an_outage()
    commands = Commands(store, NodeClock(monotonic=lambda: NOW), Ids())
    await commands.catch_up(await store.list_schedules(DueSchedules(EVERY_SEGMENT, NOW), SCHEDULES))
    assert sum(store.weights) == SCHEDULES * (MISSED + 1)
    assert max(store.weights) < PORTION + MAX_FIRES_PER_STEP


@pytest.mark.parametrize(
    ("lookahead", "latest"), [(10 * SECOND, 2 * SECOND), (4 * SECOND, -SECOND), (SECOND, -SECOND)]
)
async def test_any_planner_takes_what_its_own_planner_has_left(lookahead: Micros, latest: Micros) -> None:
    """With the usual lookahead before its time: a planner that is stopped, or leases that are away, make no
    fire late."""
    store = MemoryStore(lambda: NOW)
    for name, cursor in (("left", NOW + latest), ("of another planner", NOW + latest + 1)):
        draft = schedule_draft(Ids(), "default", name, "task", Every("1h"), NO_DEFAULTS, NOW, {})
        await put_schedule(store, draft, cursor, 0)
    await Planner(store, NodeClock(monotonic=lambda: NOW), tuple, lookahead, Observers()).run_once()
    waiting = await store.list_schedules(DueSchedules(EVERY_SEGMENT, NOW + lookahead), 10)
    assert [schedule.draft.name for schedule in waiting] == ["of another planner"]

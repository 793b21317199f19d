"""After an outage everything missed is written, in portions a store can take."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.engine.node.timer import NodeClock
from duetime.engine.plan.planner import EVERY_SEGMENT, PORTION, Planner
from duetime.engine.submit.build import NO_DEFAULTS
from duetime.engine.submit.commands import Commands
from duetime.engine.submit.schedules import schedule_draft
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, Micros
from duetime.model.schedule import MAX_FIRES_PER_STEP, Firing, Missed
from duetime.model.when import Every
from duetime.observer import Observers
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
    assert not await store.due_schedules(EVERY_SEGMENT, NOW, 1)


async def test_nor_before_all_of_them_are_changed_together() -> None:
    store = await after_an_outage()
    commands = Commands(store, NodeClock(monotonic=lambda: NOW), Ids())
    await commands.catch_up(await store.due_schedules(EVERY_SEGMENT, NOW, SCHEDULES))
    assert sum(store.weights) == SCHEDULES * (MISSED + 1)
    assert max(store.weights) < PORTION + MAX_FIRES_PER_STEP

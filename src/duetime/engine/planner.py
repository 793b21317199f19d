"""The planner: turns schedules into jobs ahead of time, so that a recurring fire is as punctual as a one-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duetime.clock import Clock, pause
from duetime.engine.failpoint import failpoint
from duetime.errors import InvalidInput
from duetime.model.events import FiresPlanned
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.schedule import Firing, Schedule, plan_fires
from duetime.observer import Observers
from duetime.store import Store

BATCH = 250  # schedules a step: planning is pure computation and must not hold up jobs that start meanwhile
LOOK_AGAIN = SECOND  # the hint that tells of a new schedule may be lost
STEP = 25  # schedules computed before whatever else is ready has its turn
PORTION = 2_000  # fires written at once: each schedule may have missed hundreds, and a store bounds what a statement may take
EVERY_SEGMENT = tuple(range(SEGMENTS))
OVERDUE = SECOND  # a cursor this far in the past is anybody's, whoever holds the segment


class Planner:
    name = "planner"

    def __init__(self, store: Store, clock: Clock, segments: Callable[[], Sequence[int]], lookahead: Micros, observers: Observers) -> None:
        self._store = store
        self._clock = clock
        self._segments = segments
        self._lookahead = lookahead
        self._observers = observers

    async def run_once(self) -> Micros:
        now = self._clock.now()
        horizon = now + self._lookahead
        segments = self._segments()
        # Up to the horizon, but not before half of the way to it is used up: then what fires often is written for many fires at once.
        more = bool(segments) and await self._plan(segments, now, now + self._lookahead // 2, horizon)
        overdue = len(segments) < SEGMENTS and await self._plan(EVERY_SEGMENT, now, now - OVERDUE, horizon)
        return 0 if more or overdue else _between_seconds(self._clock.now())

    async def _plan(self, segments: Sequence[int], now: Micros, until: Micros, horizon: Micros) -> bool:
        """One batch of schedules whose cursor is not after `until`; True when there may be more."""
        schedules = await self._store.due_schedules(segments, until, BATCH)
        planned: list[tuple[Schedule, Firing]] = []
        fires, behind = 0, False
        for number, schedule in enumerate(schedules, 1):
            if (firing := await self._firing(schedule, now, horizon)) is not None:
                planned.append((schedule, firing))
                fires += len(firing.fires)
                behind = behind or (firing.next_fire_time is not None and firing.next_fire_time <= horizon)
            if fires >= PORTION:
                await self._write(planned)
                planned, fires = [], 0
            elif number % STEP == 0:
                await pause(0)
        await self._write(planned)
        return behind or len(schedules) >= BATCH

    async def _write(self, planned: Sequence[tuple[Schedule, Firing]]) -> None:
        if not planned:
            return
        failpoint("planner.before_fire")
        applied = await self._store.fire([firing for _, firing in planned])
        failpoint("planner.after_fire")
        if applied:
            self._report(planned)

    async def _firing(self, schedule: Schedule, now: Micros, horizon: Micros) -> Firing | None:
        try:
            return plan_fires(schedule, now, horizon)
        except InvalidInput as problem:
            # A zone can vanish from the machine's data. The others must go on, and somebody must see this one.
            await self._store.pause_schedule(schedule.draft.tenant, schedule.draft.name, f"cannot be planned: {problem}", self.name)
            return None

    def _report(self, planned: Sequence[tuple[Schedule, Firing]]) -> None:
        fires = [fire for _, firing in planned for fire in firing.fires]
        skipped = sum(fire.skip_reason is not None for fire in fires)
        self._observers(FiresPlanned(len(fires) - skipped, skipped, planned))


def _between_seconds(now: Micros) -> Micros:
    """How long to wait for the next look: most schedules fire at a full second, and then there is enough to do."""
    return LOOK_AGAIN - (now - LOOK_AGAIN // 2) % LOOK_AGAIN

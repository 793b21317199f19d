"""The planner: turns schedules into jobs ahead of time, so that a recurring fire is as punctual as a
one-off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from duetime.clock import Clock, pause
from duetime.engine.failpoint import failpoint
from duetime.errors import InvalidInput
from duetime.model.events import FiresPlanned
from duetime.model.ids import EVERY_SEGMENT, SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.schedule import Firing, Schedule, plan_fires
from duetime.observer import Observers
from duetime.store import DueSchedules, ScheduleState, Store

# Retention: the leader deletes what is older than the operator keeps, and prepares storage for the days
# ahead.


PRUNE_INTERVAL = 600 * SECOND
HISTORY_INTERVAL = 6 * 3_600 * SECOND  # it reads all jobs
MAX_LATENESS = 86_400 * SECOND
LEADER_CHECK_INTERVAL = 5 * SECOND


class Retention:
    name = "retention"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        leads: Callable[[], bool],
        keep: Micros,
        targets: Mapping[str, Micros],
        history: Callable[[], Awaitable[Micros | None]] | None = None,
    ) -> None:
        """`history` decides about old jobs itself, and returns the end of the oldest job that it kept: before
        that nothing is left to delete."""
        self._store = store
        self._clock = clock
        self._leads = leads
        self._keep = keep
        self._targets = targets  # those whose jobs are kept for a shorter time
        self._history = history
        self._history_at: Micros | None = None
        self._kept_from: Micros = 0

    async def run_once(self) -> Micros:
        if not self._leads():
            return LEADER_CHECK_INTERVAL
        now = self._clock.now()
        if self._history is not None:
            await self._run_history(self._history, now)
            return PRUNE_INTERVAL
        await self._store.prune(
            now - self._keep, {target: now - keep for target, keep in self._targets.items()} or None
        )
        return PRUNE_INTERVAL

    async def _run_history(self, history: Callable[[], Awaitable[Micros | None]], now: Micros) -> None:
        if self._history_at is None or now >= self._history_at + HISTORY_INTERVAL:
            oldest = await history()
            self._history_at = now
            # A job may be recorded some time after its end.
            self._kept_from = min(now if oldest is None else oldest, now - self._keep) - MAX_LATENESS
        await self._store.prune(max(self._kept_from, 0))


BATCH = 250  # schedules read together
PLAN_INTERVAL = SECOND  # the hint about a new schedule may be lost
STEP = 25  # schedules computed before the event loop runs other work: jobs start meanwhile
# Fires written together: each schedule may have missed hundreds, and stores limit the size of a statement
PORTION = 2_000
# Any planner takes a schedule that its own planner should have planned so long ago; where the lookahead is
# short, one whose fire is overdue by a second
UNPLANNED_FOR = 3 * SECOND
OVERDUE = SECOND


class Planner:
    name = "planner"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        segments: Callable[[], Sequence[int]],
        lookahead: Micros,
        observers: Observers,
    ) -> None:
        self._store = store
        self._clock = clock
        self._segments = segments
        self._lookahead = lookahead
        self._observers = observers

    async def run_once(self) -> Micros:
        now = self._clock.now()
        horizon = now + self._lookahead
        segments = self._segments()
        # Plan up to the horizon when half of the lookahead is left: then many fires are written together
        more = bool(segments) and await self._plan(segments, now, now + self._lookahead // 2, horizon)
        latest = now + max(self._lookahead // 2 - UNPLANNED_FOR, -OVERDUE)
        left = len(segments) < SEGMENTS and await self._plan(EVERY_SEGMENT, now, latest, horizon)
        return 0 if more or left else _between_seconds(self._clock.now())

    async def _plan(self, segments: Sequence[int], now: Micros, until: Micros, horizon: Micros) -> bool:
        """One batch of schedules whose cursor is not after `until`; True when there may be more."""
        schedules = await self._store.list_schedules(DueSchedules(segments, until), BATCH)
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
            # A zone can vanish from the machine's data. The other schedules go on; this one is paused, with a
            # note for its operator.
            draft = schedule.draft
            paused = ScheduleState(draft, schedule.next_fire_time, True, f"cannot be planned: {problem}")
            await self._store.write_schedule(draft.tenant, draft.name, paused, schedule.version, self.name)
            return None

    def _report(self, planned: Sequence[tuple[Schedule, Firing]]) -> None:
        fires = [fire for _, firing in planned for fire in firing.fires]
        skipped = sum(fire.skip_reason is not None for fire in fires)
        self._observers(FiresPlanned(len(fires) - skipped, skipped, planned))


def _between_seconds(now: Micros) -> Micros:
    """How long to wait: until the middle of a second, because most schedules fire at a full second."""
    return PLAN_INTERVAL - (now - PLAN_INTERVAL // 2) % PLAN_INTERVAL

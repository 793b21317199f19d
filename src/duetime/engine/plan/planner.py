"""The planner: turns schedules into jobs ahead of time, so that a recurring fire is as punctual as a
one-off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from duetime.clock import Clock, pause
from duetime.engine.failpoint import failpoint
from duetime.errors import InvalidInput, StoreError
from duetime.model.events import FiresPlanned
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import LEADER, NodeId, dispatch_lease, fair_share, segment_lease
from duetime.model.schedule import Firing, Schedule, plan_fires
from duetime.observer import Observers
from duetime.store import ScheduleState, Store

# Leases: share the segments among the live planners, and elect a leader; the same for dispatchers.
#
# Every planner computes the same fair shares from the list of live planners, takes the free leases of its
# share and drops all others. When a planner joins, the others drop some; when one dies, its leases are free
# immediately. Leases only decide which planner tries first.


PLANNER_ROLE, DISPATCHER_ROLE = "planner", "dispatcher"
LEASES = {PLANNER_ROLE: segment_lease, DISPATCHER_ROLE: dispatch_lease}  # by role
CHECK_INTERVAL = SECOND
CONFIRM_EVERY = 10  # checks; then the store is asked whether the leases are still held
DOUBTFUL_CHECKS = 10  # after a call without a reply: it may still be carried out, after later ones


class LeaseKeeper:
    name = "keeper"

    def __init__(
        self,
        store: Store,
        node: NodeId,
        on_change: Callable[[], None],
        roles: Sequence[str] = (PLANNER_ROLE,),
    ) -> None:
        self._store = store
        self._node = node
        self._roles = [role for role in roles if role in LEASES]
        self._on_change = on_change
        self._held: set[str] = set()
        self._checks = 0
        self._doubtful = 0  # checks that confirm the leases, whatever is believed to be held
        self.segments: tuple[int, ...] = ()  # of schedules, to plan
        self.dispatched: tuple[int, ...] = ()  # of jobs, to dispatch

    @property
    def leads(self) -> bool:
        return LEADER in self._held

    async def run_once(self) -> Micros:
        nodes = await self._store.nodes(living=True)
        wanted = {LEADER} if PLANNER_ROLE in self._roles else set()
        for role in self._roles:
            sharing = [node.id for node in nodes if role in node.roles]
            wanted |= {LEASES[role](segment) for segment in fair_share(self._node, sharing)}
        if surplus := self._held - wanted:
            self._hold(self._held - surplus)
            await self._ask_for(self._held)
        self._checks += 1
        if wanted - self._held or self._doubtful or self._checks % CONFIRM_EVERY == 0:
            self._hold(await self._ask_for(wanted))
            self._doubtful = max(0, self._doubtful - 1)
        return CHECK_INTERVAL

    async def _ask_for(self, names: set[str]) -> set[str]:
        try:
            return set(await self._store.hold_leases(self._node, sorted(names)))
        except StoreError:
            self._doubtful = DOUBTFUL_CHECKS
            raise

    def _hold(self, names: set[str]) -> None:
        self._held = names
        before = self.segments, self.dispatched
        self.segments, self.dispatched = (
            tuple(segment for segment in range(SEGMENTS) if lease(segment) in names)
            for lease in (segment_lease, dispatch_lease)
        )
        if before != (self.segments, self.dispatched):
            self._on_change()


# Retention: the leader deletes what is older than the operator keeps, and prepares storage for the days
# ahead.


PRUNE_INTERVAL = 600 * SECOND
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
    ) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._keep = keep
        self._targets = targets  # those whose jobs are kept for a shorter time

    async def run_once(self) -> Micros:
        if not self._leads():
            return LEADER_CHECK_INTERVAL
        now = self._clock.now()
        await self._store.prune(
            now - self._keep, {target: now - keep for target, keep in self._targets.items()} or None
        )
        return PRUNE_INTERVAL


BATCH = 250  # schedules read together
PLAN_INTERVAL = SECOND  # the hint about a new schedule may be lost
STEP = 25  # schedules computed before the event loop runs other work: jobs start meanwhile
# Fires written together: each schedule may have missed hundreds, and stores limit the size of a statement
PORTION = 2_000
EVERY_SEGMENT = tuple(range(SEGMENTS))
OVERDUE = SECOND  # any planner takes a schedule whose cursor is this far in the past


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

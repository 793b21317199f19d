"""Statistics for people who look at the fleet: what is alive now, what was done lately, what fails, what is late, what comes next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from duetime.app.fresh import Fresh
from duetime.app.history import History
from duetime.app.nearest import nearest
from duetime.clock import Clock
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros, to_datetime
from duetime.model.job import Job, JobFilter, State
from duetime.model.lease import LEADER, NodeId
from duetime.model.schedule import Schedule, ScheduleFilter
from duetime.observers.minutes import failed
from duetime.observers.tally import MINUTE, Cell, Failing
from duetime.observers.watch import Watch
from duetime.store import Store

KEEP = SECOND
MOST_COUNTED = 100_000  # beyond this a number says "at least"
SHOWN = 10
LATE_AFTER = SECOND  # what is due for less than this is about to start
OLDEST = 400 * 86_400 * SECOND
PLANNED_AHEAD = 60 * SECOND  # fires that are jobs already
AHEAD = 35 * 86_400 * SECOND
MOST_SCHEDULES = 500
EVERY_SEGMENT = tuple(range(SEGMENTS))


@dataclass(frozen=True, slots=True)
class Live:
    """Jobs at this moment; nobody counts further than 100,000."""

    pending: int
    due: int
    running: int
    dead: int


@dataclass(frozen=True, slots=True)
class Point:
    """What ended in the time that begins at `at`. Lapses in milliseconds; None where there are none."""

    at: datetime
    succeeded: int
    failed: int
    retried: int
    dead: int
    cancelled: int
    skipped: int
    lateness_p50_ms: float | None
    lateness_p99_ms: float | None
    duration_p50_ms: float | None


@dataclass(frozen=True, slots=True)
class FailingTarget:
    target: str
    failed: int
    last_error: str
    sample: str  # id of a job


class Upcoming(NamedTuple):
    at: datetime
    name: str
    schedule_id: UUID


@dataclass(frozen=True, slots=True)
class Stats:
    now: datetime
    live: Live
    series: list[Point]
    failing: list[FailingTarget]
    late: list[Job]  # due and not started, oldest first
    next: list[Upcoming]
    leader: NodeId | None


class Statistics:
    """Kept for a second, so that many who look cost as little as one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.close()

    def close(self) -> None:
        self._history = History(self._store)
        self._fresh = Fresh(self._clock, KEEP)

    async def read(self, tenant: str, since: Micros, step: Micros, now: Micros, own: Watch | None) -> Stats:
        live = await self._fresh.get(("live", tenant), lambda: self._live(tenant, now))
        series, failing = await self._fresh.get(("past", tenant, since, step), lambda: self._past(tenant, since, step, now, own))
        late = await self._fresh.get(("late", tenant), lambda: self._late(tenant, now))
        coming = await self._fresh.get(("next", tenant), lambda: self._next(tenant, now))
        leader = await self._fresh.get("leader", self._leader)
        return Stats(to_datetime(now), live, series, failing, late, coming, leader)

    async def _live(self, tenant: str, now: Micros) -> Live:
        pending = JobFilter(tenant, frozenset({State.PENDING, State.QUEUED}))
        return Live(
            await self._store.count_matching(pending, MOST_COUNTED),
            await self._store.count_matching(replace(pending, due_before=now), MOST_COUNTED),
            await self._store.count_matching(JobFilter(tenant, frozenset({State.RUNNING})), MOST_COUNTED),
            await self._store.count_matching(JobFilter(tenant, frozenset({State.DEAD}), undisposed=True), MOST_COUNTED),
        )

    async def _past(
        self, tenant: str, since: Micros, step: Micros, now: Micros, own: Watch | None
    ) -> tuple[list[Point], list[FailingTarget]]:
        first = (now - since) // step * step
        minutes = await self._history.of(tenant).read(first // MINUTE, now // MINUTE, own)
        parts = {at: Cell() for at in range(first, now + 1, step)}
        for minute, cell in minutes.items():
            parts[minute * MINUTE // step * step].merge(cell)
        return [_point(at, cell) for at, cell in parts.items()], _failing(minutes)

    async def _late(self, tenant: str, now: Micros) -> list[Job]:
        waiting = JobFilter(tenant, frozenset({State.PENDING, State.QUEUED}))
        between = (now - OLDEST, now - LATE_AFTER)
        return await nearest(
            self._store, self._clock, lambda before: replace(waiting, due_before=before), lambda job: job.due_at, between, SHOWN
        )

    async def _next(self, tenant: str, now: Micros) -> list[Upcoming]:
        """Fires that were planned already, and those that schedules come to next."""
        planned = JobFilter(tenant, frozenset({State.PENDING, State.QUEUED}), fire_after=now)
        jobs = await nearest(
            self._store, self._clock, lambda before: replace(planned, fire_before=before), lambda job: job.fire_time,
            (now, now + PLANNED_AHEAD), 10 * SHOWN,
        )  # fmt: skip
        found = {
            Upcoming(to_datetime(job.fire_time), job.schedule, job.schedule_id)
            for job in jobs
            if job.schedule is not None and job.schedule_id is not None
        }
        for schedule in await self._schedules(tenant, now):
            if schedule.next_fire_time is not None:
                found.add(Upcoming(to_datetime(max(now, schedule.next_fire_time)), schedule.draft.name, schedule.id))
        return sorted(found)[:SHOWN]

    async def _schedules(self, tenant: str, now: Micros) -> list[Schedule]:
        """Those that fire next; where others' crowd them out, some of the tenant's own."""
        coming = await self._store.due_schedules(EVERY_SEGMENT, now + AHEAD, MOST_SCHEDULES)
        mine = [schedule for schedule in coming if schedule.draft.tenant == tenant]
        if len(mine) >= SHOWN or len(coming) < MOST_SCHEDULES:
            return mine
        return await self._store.list_schedules(ScheduleFilter(tenant, paused=False), MOST_SCHEDULES)

    async def _leader(self) -> NodeId | None:
        return next((lease.holder for lease in await self._store.leases() if lease.name == LEADER), None)


def _point(at: Micros, cell: Cell) -> Point:
    done = cell.finished
    lateness, duration = cell.lateness, cell.duration
    return Point(
        to_datetime(at), done["succeeded"], failed(cell.endings), cell.retried, done["dead"], done["cancelled"], done["skipped"],
        _millis(lateness.quantile(0.5)), _millis(lateness.quantile(0.99)), _millis(duration.quantile(0.5)),
    )  # fmt: skip


def _millis(lapse: Micros | None) -> float | None:
    return None if lapse is None else round(lapse / 1_000, 3)


def _failing(minutes: dict[int, Cell]) -> list[FailingTarget]:
    """Those that failed most often; the last error is that of the latest minute."""
    found: dict[str, Failing] = {}
    for _, cell in sorted(minutes.items()):
        for target, failing in cell.failing.items():
            before = found[target].count if target in found else 0
            found[target] = Failing(before + failing.count, failing.error, failing.sample)
    return list(_worst(found))


def _worst(found: dict[str, Failing]) -> Iterator[FailingTarget]:
    for target, failing in sorted(found.items(), key=lambda item: (-item[1].count, item[0]))[:SHOWN]:
        yield FailingTarget(target, failing.count, failing.error, failing.sample)

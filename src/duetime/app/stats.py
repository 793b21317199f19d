"""Statistics of the fleet: live jobs, recent results, failing targets, late jobs and the next fires."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from duetime.app.listing import earliest_jobs
from duetime.app.stats_history import StatsHistory
from duetime.app.ttl_cache import TtlCache
from duetime.clock import Clock
from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros, to_datetime
from duetime.model.job import Job, JobFilter, State
from duetime.model.lease import LEADER, NodeId
from duetime.model.schedule import Schedule, ScheduleFilter
from duetime.observers.counters import MINUTE, AttemptCounts, TargetFailures
from duetime.observers.rollups import failed
from duetime.observers.telemetry import ProcessTelemetry
from duetime.store import Store

CACHE_TTL = SECOND
MAX_COUNTED = 100_000
SHOWN = 10
LATE_AFTER = SECOND  # a job that just became due is about to start
MAX_AGE = 400 * 86_400 * SECOND  # of late jobs
PLANNED_AHEAD = 60 * SECOND  # fires that already are jobs
AHEAD = 35 * 86_400 * SECOND
MAX_SCHEDULES = 500
MAX_SPAN = 24 * 3_600 * SECOND
MAX_POINTS = 1_440
EVERY_SEGMENT = tuple(range(SEGMENTS))


@dataclass(frozen=True, slots=True)
class Live:
    """Jobs at this moment, counted up to 100,000."""

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
class WorstTarget:
    target: str
    failed: int
    last_error: str
    sample: str  # id of a job


class Upcoming(NamedTuple):
    at: datetime
    name: str
    schedule_id: UUID


@dataclass(frozen=True, slots=True)
class FleetStats:
    now: datetime
    live: Live
    series: list[Point]
    failing: list[WorstTarget]
    late: list[Job]  # due and not started, oldest first
    next: list[Upcoming]
    leader: NodeId | None


class StatsReader:
    """Answers are cached for a second, so that many readers cost as little as one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.close()

    def close(self) -> None:
        self.history = StatsHistory(self._store)
        self._cache = TtlCache(self._clock, CACHE_TTL)

    async def read(
        self, tenant: str, since: Micros, step: Micros, now: Micros, own: ProcessTelemetry | None
    ) -> FleetStats:
        live = await self._cache.get(("live", tenant), lambda: self._live(tenant, now))
        series, failing = await self._cache.get(
            ("past", tenant, since, step), lambda: self._past(tenant, since, step, now, own)
        )
        late = await self._cache.get(("late", tenant), lambda: self._late(tenant, now))
        coming = await self._cache.get(("next", tenant), lambda: self._next(tenant, now))
        leader = await self._cache.get("leader", self._leader)
        return FleetStats(to_datetime(now), live, series, failing, late, coming, leader)

    async def _live(self, tenant: str, now: Micros) -> Live:
        pending = JobFilter(tenant, frozenset({State.PENDING, State.QUEUED}))
        return Live(
            await self._store.count_jobs(pending, MAX_COUNTED),
            await self._store.count_jobs(replace(pending, due_before=now), MAX_COUNTED),
            await self._store.count_jobs(JobFilter(tenant, frozenset({State.RUNNING})), MAX_COUNTED),
            await self._store.count_jobs(
                JobFilter(tenant, frozenset({State.DEAD}), undisposed=True), MAX_COUNTED
            ),
        )

    async def _past(
        self, tenant: str, since: Micros, step: Micros, now: Micros, own: ProcessTelemetry | None
    ) -> tuple[list[Point], list[WorstTarget]]:
        first = (now - since) // step * step
        minutes = await self.history.of(tenant).read(first // MINUTE, now // MINUTE, own)
        steps = {at: AttemptCounts() for at in range(first, now + 1, step)}
        for minute, cell in minutes.items():
            steps[minute * MINUTE // step * step].merge(cell)
        return [_point(at, cell) for at, cell in steps.items()], _failing(minutes)

    async def _late(self, tenant: str, now: Micros) -> list[Job]:
        pending = JobFilter(tenant, frozenset({State.PENDING, State.QUEUED}))
        between = (now - MAX_AGE, now - LATE_AFTER)
        return await earliest_jobs(
            self._store,
            self._clock,
            lambda before: replace(pending, due_before=before),
            lambda job: job.due_at,
            between,
            SHOWN,
        )

    async def _next(self, tenant: str, now: Micros) -> list[Upcoming]:
        """Fires that are already planned, and the next fires of schedules."""
        planned = JobFilter(tenant, frozenset({State.PENDING, State.QUEUED}), fire_after=now)
        jobs = await earliest_jobs(
            self._store, self._clock, lambda before: replace(planned, fire_before=before),
            lambda job: job.fire_time, (now, now + PLANNED_AHEAD), 10 * SHOWN,
        )  # fmt: skip
        found = {
            Upcoming(to_datetime(job.fire_time), job.schedule, job.schedule_id)
            for job in jobs
            if job.schedule is not None and job.schedule_id is not None
        }
        for schedule in await self._schedules(tenant, now):
            if schedule.next_fire_time is not None:
                found.add(
                    Upcoming(to_datetime(max(now, schedule.next_fire_time)), schedule.draft.name, schedule.id)
                )
        return sorted(found)[:SHOWN]

    async def _schedules(self, tenant: str, now: Micros) -> list[Schedule]:
        """Those that fire next. If schedules of other tenants fill the page, some of this tenant."""
        coming = await self._store.due_schedules(EVERY_SEGMENT, now + AHEAD, MAX_SCHEDULES)
        mine = [schedule for schedule in coming if schedule.draft.tenant == tenant]
        if len(mine) >= SHOWN or len(coming) < MAX_SCHEDULES:
            return mine
        return await self._store.list_schedules(ScheduleFilter(tenant, paused=False), MAX_SCHEDULES)

    async def _leader(self) -> NodeId | None:
        return next((lease.holder for lease in await self._store.leases() if lease.name == LEADER), None)


def _point(at: Micros, cell: AttemptCounts) -> Point:
    done = cell.finished
    lateness, duration = cell.lateness, cell.duration
    return Point(
        to_datetime(at), done["succeeded"], failed(cell.endings), cell.retried, done["dead"],
        done["cancelled"], done["skipped"], _millis(lateness.quantile(0.5)), _millis(lateness.quantile(0.99)),
        _millis(duration.quantile(0.5)),
    )  # fmt: skip


def _millis(lapse: Micros | None) -> float | None:
    return None if lapse is None else round(lapse / 1_000, 3)


def _failing(minutes: dict[int, AttemptCounts]) -> list[WorstTarget]:
    """The targets that failed most often; the last error is that of the latest minute."""
    found: dict[str, TargetFailures] = {}
    for _, cell in sorted(minutes.items()):
        for target, failing in cell.failing.items():
            before = found[target].count if target in found else 0
            found[target] = TargetFailures(before + failing.count, failing.error, failing.sample)
    worst = sorted(found.items(), key=lambda item: (-item[1].count, item[0]))[:SHOWN]
    return [WorstTarget(target, failing.count, failing.error, failing.sample) for target, failing in worst]


def check_times(since: Duration, step: Duration) -> tuple[Micros, Micros]:
    span, interval = duration.positive(since, "since"), duration.positive(step, "step")
    if span > MAX_SPAN:
        raise InvalidInput("since", "must be at most 24h: counts are kept for a day")
    if interval % MINUTE or interval > MAX_SPAN:
        raise InvalidInput("step", "must be whole minutes, up to 24h: counts are kept by the minute")
    if span // interval > MAX_POINTS:
        raise InvalidInput("step", f"would give more than {MAX_POINTS:,} points: use a longer one")
    return span, interval

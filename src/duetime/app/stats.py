"""Statistics of the fleet: live jobs, recent results, failing targets, late jobs and the next fires."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from duetime.app.listing import earliest_jobs, records_after
from duetime.app.queue_depth import read_depths
from duetime.clock import Clock
from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.ids import EVERY_SEGMENT
from duetime.model.instant import MINUTE, SECOND, Micros, minute_key, minute_of, to_datetime
from duetime.model.job import JobFilter, State
from duetime.model.lease import LEADER, Lease, NodeId
from duetime.model.schedule import Schedule, ScheduleFilter
from duetime.model.views import (
    FailingTarget,
    JobSummary,
    LiveCounts,
    NextFire,
    QueueDepths,
    Stats,
    StatsPoint,
)
from duetime.observers.counters import AttemptCounts, TargetFailures
from duetime.observers.metrics import ProcessTelemetry
from duetime.observers.rollups import KIND, failed, from_bytes
from duetime.store import DueSchedules, Store

# A cache with a time to live: many readers cost the store as little as one. Expensive answers are kept
# longer.


COST_FACTOR = 20  # an answer is kept for at least this many times the time it took
MAX_KEPT = 200


class TtlCache:
    """Callers that ask while an answer is being made wait for the same one. A failure is raised to all of
    them, and not kept."""

    def __init__(self, clock: Clock, ttl: Micros) -> None:
        self._clock = clock
        self._ttl = ttl
        self._made: dict[Hashable, tuple[asyncio.Task[Any], Micros]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> Any:
        known = self._made.get(key)
        if known is not None and (not known[0].done() or self._clock.monotonic() < known[1]):
            return await asyncio.shield(known[0])
        while len(self._made) >= MAX_KEPT:
            del self._made[next(iter(self._made))]
        task = asyncio.create_task(self._make(key, make))
        task.add_done_callback(_seen)  # its callers may have given up waiting
        self._made[key] = (task, 0)
        return await asyncio.shield(task)

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> Any:
        began = self._clock.monotonic()
        answer = await make()
        now = self._clock.monotonic()
        if key in self._made:
            self._made[key] = (self._made[key][0], now + max(self._ttl, COST_FACTOR * (now - began)))
        return answer


def _seen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


# Results of the fleet by the minute: the roll-ups of all processes, merged. Completed minutes are read
# once.


COMPLETE_AFTER = 5  # minutes; until then a process may still add to one
MAX_TENANTS = 32


class TenantHistory:
    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._complete: dict[int, AttemptCounts] = {}
        self._first = self._end = 0  # the range of minutes that `_complete` holds
        self._lock = asyncio.Lock()

    async def read(self, first: int, last: int, own: ProcessTelemetry | None) -> dict[int, AttemptCounts]:
        """The minutes from first to last that have counts. This process's own counts are current."""
        async with self._lock:
            return await self._read(first, last, own)

    async def _read(self, first: int, last: int, own: ProcessTelemetry | None) -> dict[int, AttemptCounts]:
        if not self._first <= first <= self._end:
            self._complete, self._first, self._end = {}, first, first
        recent = await self._load(max(first, self._end), own)
        complete_until = last - COMPLETE_AFTER
        self._complete.update((minute, cell) for minute, cell in recent.items() if minute < complete_until)
        self._complete = {minute: cell for minute, cell in self._complete.items() if minute >= first}
        self._first, self._end = first, max(self._end, complete_until)
        return {
            minute: cell for minute, cell in {**self._complete, **recent}.items() if first <= minute <= last
        }

    async def _load(self, first: int, own: ProcessTelemetry | None) -> dict[int, AttemptCounts]:
        found: dict[int, AttemptCounts] = {}
        here = {} if own is None else own.counters.minutes_of(self._tenant)
        async for record in records_after(self._store, KIND, self._tenant, minute_key(first)):
            minute = minute_of(record.key)
            if own is None or minute not in here or not record.key.endswith(own.instance):
                found.setdefault(minute, AttemptCounts()).merge(from_bytes(record.value))
        for minute, cell in here.items():
            if minute >= first:
                found.setdefault(minute, AttemptCounts()).merge(cell)
        return found


class StatsHistory:
    """The histories of tenants that were read recently."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tenants: dict[str, TenantHistory] = {}

    def of(self, tenant: str) -> TenantHistory:
        known = self._tenants.pop(tenant, None) or TenantHistory(self._store, tenant)
        self._tenants[tenant] = known
        if len(self._tenants) > MAX_TENANTS:
            del self._tenants[next(iter(self._tenants))]
        return known


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


class StatsReader:
    """Answers are cached for a second, so that many readers cost as little as one."""

    def __init__(self, store: Store, clock: Clock, leases: Callable[[], Awaitable[Sequence[Lease]]]) -> None:
        self._store = store
        self._clock = clock
        self._leases = leases
        self.close()

    def close(self) -> None:
        self.history = StatsHistory(self._store)
        self._cache = TtlCache(self._clock, CACHE_TTL)

    async def read(
        self, tenant: str, since: Micros, step: Micros, now: Micros, own: ProcessTelemetry | None
    ) -> Stats:
        live = await self._cache.get(("live", tenant), lambda: self._live(tenant, now))
        series, failing = await self._cache.get(
            ("past", tenant, since, step), lambda: self._past(tenant, since, step, now, own)
        )
        late = await self._cache.get(("late", tenant), lambda: self._late(tenant, now))
        coming = await self._cache.get(("next", tenant), lambda: self._next(tenant, now))
        leader = await self._cache.get("leader", self._leader)
        return Stats(
            now=to_datetime(now),
            live=live,
            series=series,
            failing=failing,
            late=late,
            next=coming,
            leader=leader,
        )

    async def depths(self, since: Micros, step: Micros, now: Micros) -> QueueDepths:
        made: QueueDepths = await self._cache.get(
            ("depths", since, step), lambda: read_depths(self._store, since, step, now)
        )
        return made

    async def _live(self, tenant: str, now: Micros) -> LiveCounts:
        pending = JobFilter(tenant, frozenset({State.PENDING, State.QUEUED}))
        return LiveCounts(
            pending=await self._store.count_jobs(pending, MAX_COUNTED),
            due=await self._store.count_jobs(replace(pending, due_before=now), MAX_COUNTED),
            running=await self._store.count_jobs(JobFilter(tenant, frozenset({State.RUNNING})), MAX_COUNTED),
            dead=await self._store.count_jobs(
                JobFilter(tenant, frozenset({State.DEAD}), undisposed=True), MAX_COUNTED
            ),
        )

    async def _past(
        self, tenant: str, since: Micros, step: Micros, now: Micros, own: ProcessTelemetry | None
    ) -> tuple[list[StatsPoint], list[FailingTarget]]:
        first = (now - since) // step * step
        minutes = await self.history.of(tenant).read(first // MINUTE, now // MINUTE, own)
        steps = {at: AttemptCounts() for at in range(first, now + 1, step)}
        for minute, cell in minutes.items():
            steps[minute * MINUTE // step * step].merge(cell)
        return [_point(at, cell) for at, cell in steps.items()], _failing(minutes)

    async def _late(self, tenant: str, now: Micros) -> list[JobSummary]:
        pending = JobFilter(tenant, frozenset({State.PENDING, State.QUEUED}))
        between = (now - MAX_AGE, now - LATE_AFTER)
        late = await earliest_jobs(
            self._store,
            self._clock,
            lambda before: replace(pending, due_before=before),
            lambda job: job.due_at,
            between,
            SHOWN,
        )
        return [JobSummary.of(job) for job in late]

    async def _next(self, tenant: str, now: Micros) -> list[NextFire]:
        """Fires that are already planned, and the next fires of schedules."""
        planned = JobFilter(tenant, frozenset({State.PENDING, State.QUEUED}), fire_after=now)
        jobs = await earliest_jobs(
            self._store, self._clock, lambda before: replace(planned, fire_before=before),
            lambda job: job.fire_time, (now, now + PLANNED_AHEAD), 10 * SHOWN,
        )  # fmt: skip
        found = {
            (job.fire_time, job.schedule, job.schedule_id)
            for job in jobs
            if job.schedule is not None and job.schedule_id is not None
        }
        for schedule in await self._schedules(tenant, now):
            if schedule.next_fire_time is not None:
                found.add((max(now, schedule.next_fire_time), schedule.draft.name, schedule.id))
        return [
            NextFire(at=to_datetime(at), name=name, schedule_id=schedule_id)
            for at, name, schedule_id in sorted(found)[:SHOWN]
        ]

    async def _schedules(self, tenant: str, now: Micros) -> list[Schedule]:
        """Those that fire next. If schedules of other tenants fill the page, some of this tenant."""
        coming = await self._store.list_schedules(DueSchedules(EVERY_SEGMENT, now + AHEAD), MAX_SCHEDULES)
        mine = [schedule for schedule in coming if schedule.draft.tenant == tenant]
        if len(mine) >= SHOWN or len(coming) < MAX_SCHEDULES:
            return mine
        return await self._store.list_schedules(ScheduleFilter(tenant, paused=False), MAX_SCHEDULES)

    async def _leader(self) -> NodeId | None:
        return next((lease.holder for lease in await self._leases() if lease.name == LEADER), None)


def _point(at: Micros, cell: AttemptCounts) -> StatsPoint:
    done, lateness = cell.finished, cell.lateness
    return StatsPoint(
        at=to_datetime(at), succeeded=done["succeeded"], failed=failed(cell.endings), retried=cell.retried,
        dead=done["dead"], cancelled=done["cancelled"], skipped=done["skipped"],
        lateness_p50_ms=_millis(lateness.quantile(0.5)), lateness_p99_ms=_millis(lateness.quantile(0.99)),
        duration_p50_ms=_millis(cell.duration.quantile(0.5)),
    )  # fmt: skip


def _millis(lapse: Micros | None) -> float | None:
    return None if lapse is None else round(lapse / 1_000, 3)


def _failing(minutes: dict[int, AttemptCounts]) -> list[FailingTarget]:
    """The targets that failed most often; the last error is that of the latest minute."""
    found: dict[str, TargetFailures] = {}
    for _, cell in sorted(minutes.items()):
        for target, failing in cell.failing.items():
            before = found[target].count if target in found else 0
            found[target] = TargetFailures(before + failing.count, failing.error, failing.sample)
    worst = sorted(found.items(), key=lambda item: (-item[1].count, item[0]))[:SHOWN]
    return [
        FailingTarget(target=target, failed=one.count, last_error=one.error, sample=UUID(one.sample))
        for target, one in worst
    ]


def check_times(since: Duration, step: Duration) -> tuple[Micros, Micros]:
    span, interval = duration.positive(since, "since"), duration.positive(step, "step")
    if span > MAX_SPAN:
        raise InvalidInput("since", "must be at most 24h: counts are kept for a day")
    if interval % MINUTE or interval > MAX_SPAN:
        raise InvalidInput("step", "must be whole minutes, up to 24h: counts are kept by the minute")
    if span // interval > MAX_POINTS:
        raise InvalidInput("step", f"would give more than {MAX_POINTS:,} points: use a longer one")
    return span, interval

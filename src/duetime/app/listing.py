"""Reads of jobs, schedules and records: pages by filter, the earliest jobs, schedules by name or id."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from duetime.clock import Clock
from duetime.errors import ScheduleNotFound
from duetime.model.ids import SHORT_ID, fire_times_of, read_id_part
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Job, JobFilter, State
from duetime.model.schedule import Schedule
from duetime.store import Record, Store

MAX_SORTED = 200  # jobs that are read to sort them
MAX_SCANNED, SCAN_PAGE = 5_000, 500  # jobs that are read to find one by a part of its id
NARROWING_TIMEOUT = SECOND * 3 // 10
MIN_INTERVAL = SECOND // 1_000
RECORD_PAGE = 500

FilterBefore = Callable[[Micros], JobFilter]  # the jobs before an instant


@dataclass(frozen=True, slots=True)
class JobQuery:
    """None means any."""

    state: State | None = None
    queue: str | None = None
    owner: str | None = None
    schedule: str | None = None  # its name
    worker: str | None = None  # a node's id or name
    label: tuple[str, str] | None = None  # a key, and the value it must have
    due_after: Micros | None = None
    due_before: Micros | None = None
    target: str | None = None  # a task's name, or "@http"
    error: str | None = None  # a part of its error; case does not matter
    error_group: str | None = None  # as `app.dead.groups` names it
    payload: tuple[str, str] | None = None  # the path of a field, such as "order.id", and its value
    id: str | None = None  # the first digits of its id, or its last 8

    @property
    def is_search(self) -> bool:
        return self.id is not None or filter_of("", self).is_search


class JobPage(NamedTuple):
    jobs: list[Job]
    next: UUID | None  # where the next page begins; None: this is the last


async def page_of(store: Store, tenant: str, query: JobQuery, limit: int, before: UUID | None) -> JobPage:
    nodes = await _nodes(store, query.worker)
    if nodes == []:
        return JobPage([], None)
    wanted = filter_of(tenant, query, None if nodes is None else nodes[-1])
    if query.id is not None:
        return JobPage(await _with_id(store, wanted, query.id, limit), None)
    found = await store.list_jobs(wanted, limit + 1, before)
    return JobPage(found[:limit], found[limit - 1].id if len(found) > limit else None)


async def _with_id(store: Store, wanted: JobFilter, part: str, limit: int) -> list[Job]:
    """Jobs whose id begins with these digits, or ends with them if they are as many as the UI shows. The
    first digits are the fire time; by the last ones only the newest jobs are searched."""
    digits, is_ending = read_id_part(part)
    found: list[Job] = []
    if not is_ending:
        low, high = fire_times_of(digits)
        found = await _scan(
            store,
            replace(wanted, fire_after=low, fire_before=high),
            limit,
            lambda one: one.startswith(digits),
        )
    if not found and len(digits) == SHORT_ID:
        found = await _scan(store, wanted, limit, lambda one: one.endswith(digits))
    return found


async def _scan(store: Store, wanted: JobFilter, limit: int, fits: Callable[[str], bool]) -> list[Job]:
    found: list[Job] = []
    before = None
    for _ in range(MAX_SCANNED // SCAN_PAGE):
        page = await store.list_jobs(wanted, SCAN_PAGE, before)
        found += [job for job in page if fits(job.id.hex)]
        if len(found) >= limit or len(page) < SCAN_PAGE:
            break
        before = page[-1].id
    return found[:limit]


def filter_of(tenant: str, query: JobQuery, node: int | None = None) -> JobFilter:
    return JobFilter(
        tenant,
        None if query.state is None else frozenset({query.state}),
        query.queue,
        query.owner,
        query.schedule,
        query.target,
        node,
        query.due_after,
        query.due_before,
        label=query.label,
        error=query.error,
        error_group=query.error_group,
        payload=query.payload,
    )


async def _nodes(store: Store, worker: str | None) -> list[int] | None:
    if worker is None:
        return None
    if worker.isascii() and worker.isdigit() and len(worker) < 19:
        return [int(worker)]
    return [node.id for node in await store.nodes() if node.name == worker]


async def find_schedule(store: Store, tenant: str, reference: str) -> Schedule:
    """By id or by name."""
    found = await _schedule_by_id(store, tenant, reference) or await store.get_schedule(tenant, reference)
    if found is None:
        raise ScheduleNotFound(f"schedule {reference!r} not found: list the schedules to see all of them")
    return found


async def _schedule_by_id(store: Store, tenant: str, reference: str) -> Schedule | None:
    try:
        wanted = UUID(reference)
    except ValueError:
        return None
    return await store.get_schedule(tenant, wanted)


async def earliest_jobs(
    store: Store,
    clock: Clock,
    wanted: FilterBefore,
    key: Callable[[Job], Micros],
    between: tuple[Micros, Micros],
    limit: int,
) -> list[Job]:
    """The first jobs by `key` in an interval. Stores list the newest first, so the interval is narrowed until
    few jobs are left. Exact unless thousands of jobs share an instant, or the store is slow."""
    before = await _narrow(store, clock, wanted, between, limit)
    return sorted(await store.list_jobs(wanted(before), MAX_SORTED), key=key)[:limit]


async def _narrow(
    store: Store, clock: Clock, wanted: FilterBefore, between: tuple[Micros, Micros], limit: int
) -> Micros:
    """An instant before which there are at least `limit` jobs and at most MAX_SORTED."""
    low, high = between
    deadline = clock.monotonic() + NARROWING_TIMEOUT
    if await store.count_jobs(wanted(high), MAX_SORTED + 1) <= MAX_SORTED:
        return high
    while high - low > MIN_INTERVAL and clock.monotonic() < deadline:
        middle = (low + high) // 2
        found = await store.count_jobs(wanted(middle), MAX_SORTED + 1)
        if limit <= found <= MAX_SORTED:
            return middle
        low, high = (low, middle) if found > MAX_SORTED else (middle, high)
    return high


async def records_after(store: Store, kind: str, tenant: str, key: str) -> AsyncIterator[Record]:
    """All of them, by key."""
    after = (tenant, key)
    while page := await store.list_records(kind, tenant, RECORD_PAGE, after):
        for record in page:
            yield record
        if len(page) < RECORD_PAGE:
            break
        after = (tenant, page[-1].key)

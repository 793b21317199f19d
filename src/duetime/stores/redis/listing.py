"""Lists and counts of jobs, newest fire time first.

The lists of the server tell which jobs there are in a state, of a tenant and of a schedule. Other fields of a
filter are compared here, job by job."""

from __future__ import annotations

from operator import attrgetter
from uuid import UUID

from duetime.model.ids import first_id
from duetime.model.instant import SECOND
from duetime.model.job import Job, JobFilter, State
from duetime.model.search import selects
from duetime.stores.redis import lists
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.job_rows import job_of

MIN_CHUNKS, MAX_CHUNKS = 4, 200  # read from a list at a time
MAX_ROWS = 500  # read at a time
# A job that waits for a permit was due when it began to wait. Counts of due jobs do not ask when that was.
DUE_TOLERANCE = SECOND
_PAST = {
    State.SUCCEEDED: (lists.SUCCEEDED,),
    State.DEAD: (lists.OPEN_DEAD, lists.RESOLVED_DEAD),
    State.CANCELLED: (lists.CANCELLED,),
    State.SKIPPED: (lists.SKIPPED,),
}
_PENDING, _RUNNING = frozenset({State.PENDING}), frozenset({State.RUNNING})
_LIVE = _PENDING | _RUNNING


class RedisListing:
    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def page(self, wanted: JobFilter, limit: int, before: UUID | None = None) -> list[Job]:
        if wanted.states == _RUNNING:
            return (await self._running(wanted, before))[:limit]
        found: list[Job] = []
        scan = ListScan(self._connection, wanted, limit, before)
        number = max(1, min(limit, MAX_ROWS))
        while len(found) < limit and not scan.is_over:
            entries = await scan.step()
            while entries and len(found) < limit:
                jobs = map(job_of, await self._connection.run("read_jobs", *entries[:number]))
                found += [job for job in jobs if selects(wanted, job, job)]
                entries, number = entries[number:], min(number * 2, MAX_ROWS)
        return found[:limit]

    async def count(self, wanted: JobFilter, limit: int) -> int:
        number = await self._count_lanes(wanted)
        if number is None and _is_listed(wanted):
            number = await self._count_entries(wanted, limit)
        if number is None:
            number = await self._count_jobs(wanted, limit)
        return min(number, limit)

    async def _running(self, wanted: JobFilter, before: UUID | None) -> list[Job]:
        """They are few: as many as the workers have room for."""
        jobs = [job_of(row) for row in await self._connection.run("read_jobs")]
        found = [job for job in jobs if selects(wanted, job, job) and (before is None or job.id < before)]
        return sorted(found, key=attrgetter("id"), reverse=True)

    async def _count_lanes(self, wanted: JobFilter) -> int | None:
        """Of the pending or the running jobs of a tenant or of one of its queues; None for other filters."""
        plain = JobFilter(wanted.tenant, wanted.states, wanted.queue, due_before=wanted.due_before)
        of_running = wanted.states == _RUNNING and wanted.due_before is None
        if wanted != plain or not (of_running or wanted.states == _PENDING):
            return None
        pending, running, now = await self._connection.run(
            "count_lanes", wanted.tenant, wanted.queue or "", wanted.due_before or ""
        )
        if wanted.due_before is not None and wanted.due_before < int(now) - DUE_TOLERANCE:
            return None
        return int(running if of_running else pending)

    async def _count_entries(self, wanted: JobFilter, limit: int) -> int:
        number, scan = 0, ListScan(self._connection, wanted, limit, None)
        while number < limit and not scan.is_over:
            number += len(await scan.step())
        return number

    async def _count_jobs(self, wanted: JobFilter, limit: int) -> int:
        number, before = 0, None
        while number < limit and (page := await self.page(wanted, min(limit, MAX_ROWS), before)):
            number, before = number + len(page), page[-1].id
        return number


class ListScan:
    """Reads the lists that a filter needs, merged, the latest entries first."""

    def __init__(
        self,
        connection: RedisConnection,
        wanted: JobFilter,
        limit: int,
        before: UUID | None,
    ) -> None:
        self._connection = connection
        self._names = [lists.list_name(kind, wanted.tenant, wanted.schedule) for kind in _kinds(wanted)]
        self._low = b"" if wanted.fire_after is None else first_id(wanted.fire_after).bytes
        ends = [] if before is None else [before.bytes]
        ends += [] if wanted.fire_before is None else [first_id(wanted.fire_before).bytes]
        self._end = min(ends, default=lists.END)
        self._number = min(MAX_CHUNKS, MIN_CHUNKS + limit // 12)
        self.is_over = not self._names

    async def step(self) -> list[bytes]:
        """The next entries, as many as fit; it may be none of them."""
        found = await self._connection.run("list_chunks", self._number, self._end, *self._names)
        by_list = list(zip(self._names, found, strict=True))
        bounds = [lists.bound_of(name, chunks[-1]) for name, chunks in by_list if len(chunks) == self._number]
        # What is below the last chunk of a list is not known yet.
        low = max([self._low, *bounds])
        entries = [
            entry
            for name, chunks in by_list
            for chunk in chunks
            for entry in lists.entries_of(name, chunk)
            if low <= entry < self._end
        ]
        self.is_over = not bounds or low == self._low
        self._end, self._number = low, min(MAX_CHUNKS, self._number * 2)
        return sorted(entries, reverse=True)


def _kinds(wanted: JobFilter) -> list[str]:
    if wanted.undisposed:
        return [lists.OPEN_DEAD] if wanted.states is None or State.DEAD in wanted.states else []
    states = frozenset(State) if wanted.states is None else wanted.states
    live = [lists.LIVE] if states & _LIVE else []
    return live + [kind for state, kinds in _PAST.items() if state in states for kind in kinds]


def _is_listed(wanted: JobFilter) -> bool:
    """Whether the lists alone say which jobs the filter selects."""
    by_list = JobFilter(
        wanted.tenant,
        wanted.states,
        schedule=wanted.schedule,
        undisposed=wanted.undisposed,
        fire_after=wanted.fire_after,
        fire_before=wanted.fire_before,
    )
    live = _LIVE if wanted.states is None else wanted.states & _LIVE
    return wanted == by_list and live in (frozenset(), _LIVE)

"""Pages of plain jobs: first the periodic jobs, which are schedules, by name; then one-time jobs, newest
first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from uuid import UUID

from duetime.api.compat.job_mapping import STATES, status_of
from duetime.app.listing import JobQuery
from duetime.app.services import Services
from duetime.engine.submit.validate import check_id
from duetime.model.job import Job
from duetime.model.schedule import Schedule, ScheduleFilter

ROWS = 200  # read at a time
MAX_ROWS = 5_000  # read for one page: jobs of schedules are between the one-time jobs and are skipped
Position = list[Any]  # ["periodic", name] or ["once", fire_time, id] of the last row read


class PlainJobPage(NamedTuple):
    found: list[Schedule | Job]
    next: Position | None


async def jobs_after(
    view: Services, status: str | None, user: str | None, limit: int, position: Position | None
) -> PlainJobPage:
    """A page may contain fewer than `limit` jobs and not be the last."""
    found: list[Schedule | Job] = []
    rows = 0
    async for row, place in _rows(view, status, user, position):
        rows += 1
        if row is not None:
            found.append(row)
        if len(found) == limit or rows == MAX_ROWS:
            return PlainJobPage(found, place)
    return PlainJobPage(found, None)


async def _rows(
    view: Services, status: str | None, user: str | None, position: Position | None
) -> AsyncIterator[tuple[Schedule | Job | None, Position]]:
    """Every row with its position; None for a row to skip."""
    if position is None or position[0] == "periodic":
        now = await view.now()
        async for schedule in _schedules(view, user, None if position is None else position[1]):
            yield (
                schedule if status in (None, status_of(schedule, now)) else None,
                ["periodic", schedule.draft.name],
            )
        position = None
    if status is None or status in STATES:
        before = None if position is None else (position[1], check_id(position[2]))
        async for job in _jobs(view, status, user, before):
            yield job if job.schedule_id is None else None, ["once", job.fire_time, str(job.id)]


async def _schedules(view: Services, user: str | None, after: str | None) -> AsyncIterator[Schedule]:
    while found := await view.schedules.page(ScheduleFilter(view.tenant, owner=user), ROWS, after):
        for one in found:
            yield one
        after = found[-1].draft.name


async def _jobs(
    view: Services, status: str | None, user: str | None, before: tuple[int, UUID] | None
) -> AsyncIterator[Job]:
    query = JobQuery(None if status is None else STATES[status], owner=user)
    while True:
        page = await view.jobs.page(query, ROWS, before)
        for one in page.jobs:
            yield one
        if page.next is None:
            return
        before = page.next

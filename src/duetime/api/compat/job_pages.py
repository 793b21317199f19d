"""Pages of plain jobs: first the periodic ones, which are schedules, by name; then those that run once, newest first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from uuid import UUID

from duetime.api.compat.job_words import STATES, status_of
from duetime.app.listing import JobQuery
from duetime.app.operations import Operations
from duetime.engine.checks import check_id
from duetime.model.job import Job
from duetime.model.schedule import Schedule, ScheduleFilter

ROWS = 200  # read at a time
MOST_ROWS = 5_000  # looked at for one page: executions of schedules lie between the jobs and are passed over
Position = list[Any]  # ["periodic", name] or ["once", fire_time, id] of the last row looked at


class Page(NamedTuple):
    found: list[Schedule | Job]
    next: Position | None


async def jobs_after(view: Operations, status: str | None, user: str | None, limit: int, position: Position | None) -> Page:
    """A page may hold fewer than `limit` and not be the last."""
    found: list[Schedule | Job] = []
    looked_at = 0
    async for row, place in _rows(view, status, user, position):
        looked_at += 1
        if row is not None:
            found.append(row)
        if len(found) == limit or looked_at == MOST_ROWS:
            return Page(found, place)
    return Page(found, None)


async def _rows(
    view: Operations, status: str | None, user: str | None, position: Position | None
) -> AsyncIterator[tuple[Schedule | Job | None, Position]]:
    """Every row with its place; None for one that is passed over."""
    if position is None or position[0] == "periodic":
        now = await view.now()
        async for schedule in _schedules(view, user, None if position is None else position[1]):
            yield schedule if status in (None, status_of(schedule, now)) else None, ["periodic", schedule.draft.name]
        position = None
    if status is None or status in STATES:
        before = None if position is None else (position[1], check_id(position[2]))
        async for job in _jobs(view, status, user, before):
            yield job if job.schedule_id is None else None, ["once", job.fire_time, str(job.id)]


async def _schedules(view: Operations, user: str | None, after: str | None) -> AsyncIterator[Schedule]:
    while found := await view.schedule_page(ScheduleFilter(view.tenant, owner=user), ROWS, after):
        for one in found:
            yield one
        after = found[-1].draft.name


async def _jobs(view: Operations, status: str | None, user: str | None, before: tuple[int, UUID] | None) -> AsyncIterator[Job]:
    query = JobQuery(None if status is None else STATES[status], owner=user)
    while True:
        page = await view.job_page(query, ROWS, before)
        for one in page.jobs:
            yield one
        if page.next is None:
            return
        before = page.next

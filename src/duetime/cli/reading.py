"""What commands on the store itself read of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from duetime.app import App
from duetime.handle import JobHandle
from duetime.model.job import JobFilter, State
from duetime.model.schedule import Schedule, ScheduleFilter

PAGE = 1_000


async def all_schedules(app: App) -> AsyncIterator[Schedule]:
    last: str | None = None
    while page := await app.store.list_schedules(ScheduleFilter(app.tenant), PAGE, last):
        for schedule in page:
            yield schedule
        last = page[-1].draft.name


async def open_dead_letters(app: App, limit: int) -> list[JobHandle]:
    """The newest dead letters that nobody has retried or discarded yet."""
    wanted = JobFilter(app.tenant, states=frozenset({State.DEAD}), undisposed=True)
    return [JobHandle(app, job.id, job) for job in await app.store.list_jobs(wanted, limit)]

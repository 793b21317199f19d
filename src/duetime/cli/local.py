"""An app on its store, as commands ask for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from dataclasses import replace as changed
from datetime import datetime
from getpass import getuser
from typing import Any

from duetime.api import shown
from duetime.app import App
from duetime.app.bulk import Bulk as BulkDone
from duetime.app.listing import JobQuery
from duetime.app.operations import NewTarget
from duetime.app.planning import HORIZON
from duetime.cli.access import JobId, Progress, Target
from duetime.cli.conversion import (
    bulk_of,
    job_of,
    of,
    plan_of,
    preview_of,
    schedule_of,
    submitted_of,
    summary_of,
    version_of,
    why_of,
)
from duetime.engine.checks import check_id, check_name, check_state
from duetime.engine.drafts import NO_DEFAULTS, NewJob, schedule_draft
from duetime.model.duration import Duration
from duetime.model.job import Job as JobRow
from duetime.model.job import JobFilter, State
from duetime.model.schedule import Schedule as ScheduleRow
from duetime.model.schedule import ScheduleFilter
from duetime.model.target import HTTP, HttpTarget
from duetime.model.when import When
from duetime.remote.calls.bulk import together
from duetime.remote.calls.fields import CONTENT
from duetime.remote.results import (
    Backfilled,
    Bulk,
    DeadGroups,
    Event,
    Job,
    JobSummary,
    KnownTask,
    Node,
    Plan,
    Preview,
    Queue,
    Schedule,
    Stats,
    Submitted,
    Version,
    Why,
)
from duetime.store import QueueCount


class Local:
    def __init__(self, app: App) -> None:
        self._app = app
        self._author = _user()

    # -- jobs ---------------------------------------------------------------------------------------------------------
    async def submit(self, target: Target, payload: Any = CONTENT, **options: Any) -> Submitted:
        name, spec = _target(target)
        given = {option: value for option, value in options.items() if value is not None}
        new = NewJob(name, None if payload is CONTENT else payload, **given)
        stored = await self._app.submit_target(NewTarget(new, spec, payload is None))
        known = None if stored.conflict in (None, "replaced") else await self._app.read_job(stored.id)
        return submitted_of(stored, known)

    async def get_job(self, job_id: JobId) -> Job:
        return await self._shown(await self._app.read_job(check_id(job_id)))

    async def jobs(self, *, state: str | None = None, limit: int = 100, **filters: Any) -> list[JobSummary]:
        query = JobQuery(None if state is None else check_state(state), **filters)
        return [summary_of(row) for row in (await self._app.job_page(query, limit)).jobs]

    async def cancel_job(self, job_id: JobId, reason: str | None = None) -> Job:
        await self._app.cancel_job(job_id, reason or "cancelled from the command line")
        return await self.get_job(job_id)

    async def move_job(
        self, job_id: JobId, *, at: datetime | None = None, delay: Duration | None = None, priority: int | None = None
    ) -> Job:
        return await self._shown((await self._app.move_job(job_id, at=at, delay=delay, priority=priority)).record)

    async def run_job(self, job_id: JobId) -> Job:
        return await self._shown(await self._app.run_job(job_id))

    async def retry_job(self, job_id: JobId, payload: Any = None) -> Job:
        return await self.get_job((await self._app.retry_job(job_id, payload)).id)

    async def discard_job(self, job_id: JobId) -> None:
        await self._app.discard_job(job_id)

    async def wait_for(self, job_id: JobId, timeout: Duration | None = None) -> Job:
        return await self._shown(await self._app.wait_for(check_id(job_id), timeout))

    async def why_job(self, job_id: JobId) -> Why:
        return why_of(await self._app.why_job(job_id))

    async def dead_letters(self, *, target: str | None = None, error: str | None = None, limit: int = 100) -> list[JobSummary]:
        wanted = JobFilter(self._app.tenant, frozenset({State.DEAD}), target=target, error=error, undisposed=True)
        return [summary_of(row) for row in await self._app.store.list_jobs(wanted, limit)]

    async def dead_groups(self) -> DeadGroups:
        found = await self._app.dead_groups()
        return of(DeadGroups, {"items": [asdict(one) for one in found.groups], "complete": found.complete})

    async def bulk_jobs(
        self, action: str, *, dry_run: bool = False, progress: Progress | None = None, state: str | None = None, **filters: Any
    ) -> Bulk:
        query = JobQuery(None if state is None else check_state(state), **filters)
        return await _carry_on(lambda after: self._app.bulk_jobs(action, query, after=after, dry_run=dry_run), progress)

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def schedule(
        self, name: str, target: Target, when: When, *, replace: bool = False, payload: Any = CONTENT, **options: Any
    ) -> Schedule:
        task, spec = _target(target)
        given = {option: value for option, value in options.items() if value is not None}
        if payload is not CONTENT:
            given["payload"] = payload
        if spec is None:
            await self._app.schedule(name, task, when, replace=replace, author=self._author, **given)
            return await self.get_schedule(name)
        app = self._app
        draft = schedule_draft(app.ids, app.tenant, name, task, when, NO_DEFAULTS, await app.now(), given)
        return await self._schedule(await app.put_schedule(changed(draft, target_spec=spec), replace=replace, author=self._author))

    async def edit_schedule(self, reference: str, changes: Mapping[str, Any], *, version: int | None = None) -> Schedule:
        return await self._schedule(await self._app.edit_schedule(reference, _changes(changes), version=version, author=self._author))

    async def get_schedule(self, reference: str) -> Schedule:
        return await self._schedule(await self._app.find_schedule(reference))

    async def schedules(self, *, limit: int = 100, after: str | None = None, **filters: Any) -> list[Schedule]:
        wanted = ScheduleFilter(self._app.tenant, **filters)
        rows = await self._app.schedule_page(wanted, limit, after)
        now = await self._app.now()
        return [schedule_of(row, now) for row in rows]

    async def pause(self, reference: str, note: str | None = None) -> Schedule:
        name = await self._name(reference)
        await self._app.pause(name, note, author=self._author)
        return await self.get_schedule(name)

    async def resume(self, reference: str) -> Schedule:
        name = await self._name(reference)
        await self._app.resume(name, author=self._author)
        return await self.get_schedule(name)

    async def trigger(self, reference: str) -> Job:
        return await self.get_job((await self._app.trigger(await self._name(reference))).id)

    async def remove(self, reference: str) -> None:
        await self._app.remove_schedule(reference, author=self._author)

    async def why_schedule(self, reference: str) -> Why:
        return why_of(await self._app.why_schedule(reference))

    async def preview_schedule(self, reference: str, *, count: int = 10, after: datetime | None = None) -> Preview:
        return preview_of(await self._app.preview_schedule(reference, count=count, after=after))

    async def plan_schedule(
        self, reference: str, changes: Mapping[str, Any], *, horizon: Duration | None = None, count: int | None = None
    ) -> Plan:
        return plan_of(await self._app.plan_schedule(reference, _changes(changes), horizon=horizon or HORIZON), count)

    async def schedule_versions(self, reference: str, *, limit: int = 20) -> list[Version]:
        return [version_of(view) for view in await self._app.schedule_versions(reference, limit=limit)]

    async def restore_schedule(self, reference: str, version: int) -> Schedule:
        return await self._schedule(await self._app.restore_schedule(reference, version, author=self._author))

    async def backfill(
        self, reference: str, start: datetime, end: datetime | None = None, *, rate: str | None = None, limit: int | None = None
    ) -> Backfilled:
        bound = {} if limit is None else {"limit": limit}
        done = await self._app.backfill(reference, start, end, rate=rate, **bound)
        return Backfilled(added=len(done.jobs), existing=done.existing, next_from=done.next_from)

    async def bulk_schedules(
        self, action: str, *, dry_run: bool = False, note: str | None = None, progress: Progress | None = None, **filters: Any
    ) -> Bulk:
        wanted = ScheduleFilter(self._app.tenant, **filters)
        author = self._author
        return await _carry_on(
            lambda after: self._app.bulk_schedules(action, wanted, after=after, dry_run=dry_run, note=note, author=author), progress
        )

    # -- the fleet ----------------------------------------------------------------------------------------------------
    async def queues(self) -> list[Queue]:
        counts: dict[str, QueueCount] = {count.queue: count for count in await self._app.count_jobs()}
        return [of(Queue, shown.queue(one, counts.get(one.name))) for one in await self._app.queues()]

    async def pause_queue(self, name: str, note: str | None = None) -> Queue:
        await self._app.pause_queue(name, note)
        return await self._queue(name)

    async def resume_queue(self, name: str) -> Queue:
        await self._app.resume_queue(name)
        return await self._queue(name)

    async def limit_queue(self, name: str, most: int | None = None, rate: str | None = None) -> Queue:
        await self._app.limit_queue(name, most, rate)
        return await self._queue(name)

    async def known_tasks(self) -> list[KnownTask]:
        return [of(KnownTask, one._asdict()) for one in await self._app.known_tasks()]

    async def nodes(self) -> list[Node]:
        now = await self._app.store.time()
        return [of(Node, shown.node(one, now)) for one in await self._app.nodes()]

    async def stats(self, since: Duration | None = None, step: Duration | None = None) -> Stats:
        given = {name: value for name, value in (("since", since), ("step", step)) if value is not None}
        found = await self._app.stats(**given)
        late = [shown.job_summary(row) for row in found.late]
        following = [one._asdict() for one in found.next]
        return of(Stats, {**{name: getattr(found, name) for name in STATS}, "late": late, "next": following})

    async def events(self, types: Sequence[str] | None = None, *, after: int | None = None) -> AsyncIterator[Event]:
        given = {} if types is None else {"types": types}
        async for notice in self._app.events(after=after, **given):
            yield Event(id=notice.id, kind=notice.kind, data=notice.data)

    # -- inside -------------------------------------------------------------------------------------------------------
    async def _shown(self, row: JobRow) -> Job:
        return job_of(row, await self._app.store.list_attempts(row.id))

    async def _schedule(self, row: ScheduleRow) -> Schedule:
        return schedule_of(row, await self._app.now())

    async def _name(self, reference: str) -> str:
        return (await self._app.find_schedule(reference)).draft.name

    async def _queue(self, name: str) -> Queue:
        return next(queue for queue in await self.queues() if queue.name == name)


STATS = ("now", "live", "series", "failing", "leader")


async def _carry_on(call: Callable[[Any], Awaitable[BulkDone[Any]]], progress: Progress | None) -> Bulk:
    """A bounded part a call, until all is done."""
    total, after = Bulk(matched=0, done=0), None
    while True:
        done = await call(after)
        total, after = together(total, bulk_of(done)), done.next
        if progress is not None:
            progress(total)
        if after is None:
            return total


def _target(target: Target) -> tuple[str, bytes | None]:
    """Its name in a job, and what is stored beside."""
    if isinstance(target, str):
        return check_name(target, "task"), None
    return HTTP, HttpTarget.from_json(dict(target), "target").to_spec()


def _changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    target = changes.get("target")
    return {**changes, "target": _target(target)} if isinstance(target, Mapping) else dict(changes)


def _user() -> str | None:
    """Who is at the terminal, for the record of changes."""
    try:
        return getuser()
    except (KeyError, OSError):
        return None

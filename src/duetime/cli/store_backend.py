"""The calls of the client, on a store: an app does the work, and its rows become the views that a service
returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from getpass import getuser
from typing import Any
from uuid import UUID

from duetime.app import App
from duetime.app.bulk import Bulk
from duetime.app.listing import JobQuery
from duetime.app.schedules import NewSchedule
from duetime.cli.files import key_ring
from duetime.cli.store_drafts import Drafts, Target
from duetime.config import Settings
from duetime.engine.submit.build import NewJob
from duetime.engine.submit.submission import JobRequest
from duetime.engine.submit.validate import check_state
from duetime.invokers.http.lazy import seal_for
from duetime.model.duration import Duration
from duetime.model.edit_plan import HORIZON, ScheduleEdit
from duetime.model.instant import to_datetime, to_micros
from duetime.model.job import Job, JobFilter, State
from duetime.model.limit import QueueFilter
from duetime.model.schedule import Schedule, ScheduleFilter
from duetime.model.target import Seal
from duetime.model.views import (
    AlertChannelView,
    Backfilled,
    BrokerView,
    BulkResult,
    CreatedKey,
    EventView,
    JobSummary,
    JobView,
    KeyView,
    LeaseView,
    MuteView,
    OutputView,
    PlanView,
    PreviewView,
    QueueView,
    ScheduleView,
    Stats,
    Submitted,
    VersionView,
    WhyView,
)
from duetime.model.when import When

REASON = "cancelled from the command line"

JobId = UUID | str
Progress = Callable[[BulkResult], None]


class StoreBackend:
    def __init__(self, app: App, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._author = user_name()
        app.context.shared.published_tasks.warn = lambda warning: None  # it is in the answer, too
        self._drafts = Drafts(app, settings, self._seal)
        # Calls that return what a client does
        self.discard_job, self.dead_groups = app.discard_job, app.dead.groups
        self.known_tasks, self.nodes = app.nodes.tasks, app.nodes.views
        self.alerts = alerts = app.alerts
        self.close_alert, self.alert_deliveries = alerts.close, alerts.deliveries
        self.alert_channels, self.remove_alert_channel = alerts.channels, alerts.remove_channel
        self.test_alert_channel = alerts.test
        self.alert_rules, self.set_alert_rule = alerts.rules, alerts.set_rule
        self.remove_alert_rule = alerts.remove_rule
        self.alert_mutes, self.unmute_alerts = alerts.mutes, alerts.unmute

    # -- jobs --------------------------------------------------------------------------------------
    async def submit(self, target: Target, payload: Any, **options: Any) -> Submitted:
        name, spec = self._drafts.target(target)
        new = NewJob(name, payload, **_given(options))
        stored = await self._app.jobs.submit_request(JobRequest(new, spec, payload is None))
        known = None if stored.conflict in (None, "replaced") else await self._app.read_job(stored.id)
        warning = await self._app.context.task_warning(stored.draft.target, stored.draft.target_spec)
        return Submitted.of(stored.id, stored.draft, known, stored.conflict, warning)

    async def get_job(self, job_id: JobId) -> JobView:
        return await self._job(await self._app.read_job(job_id))

    async def jobs(self, *, state: str | None = None, limit: int = 100, **filters: Any) -> list[JobSummary]:
        return [JobSummary.of(row) for row in (await self._app.jobs.page(_query(state, filters), limit)).jobs]

    async def cancel_job(self, job_id: JobId, reason: str | None = None) -> JobView:
        await self._app.cancel_job(job_id, reason or REASON)
        return await self.get_job(job_id)

    async def reschedule_job(
        self,
        job_id: JobId,
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        priority: int | None = None,
    ) -> JobView:
        return await self._job(
            (await self._app.reschedule_job(job_id, at=at, delay=delay, priority=priority)).record
        )

    async def run_job(self, job_id: JobId) -> JobView:
        return await self._job(await self._app.jobs.run(job_id))

    async def retry_job(self, job_id: JobId, payload: Any = None) -> JobView:
        return await self.get_job((await self._app.retry_job(job_id, payload)).id)

    async def wait_for(self, job_id: JobId, timeout: Duration | None = None) -> JobView:
        return await self._job(await self._app.wait_for(job_id, timeout))

    async def job_output(self, job_id: JobId, *, attempt: int | None = None, after: int = 0) -> OutputView:
        return await self._app.job_output(job_id, attempt=attempt, after=after)

    async def why_job(self, job_id: JobId) -> WhyView:
        return WhyView.of(await self._app.why.job(job_id))

    async def dead_letters(
        self,
        *,
        target: str | None = None,
        error: str | None = None,
        error_group: str | None = None,
        limit: int = 100,
    ) -> list[JobSummary]:
        wanted = JobFilter(
            self._app.tenant,
            frozenset({State.DEAD}),
            target=target,
            error=error,
            error_group=error_group,
            undisposed=True,
        )
        return [JobSummary.of(row) for row in await self._app.context.reads.list_jobs(wanted, limit)]

    async def bulk_jobs(
        self,
        action: str,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        state: str | None = None,
        **filters: Any,
    ) -> BulkResult:
        query = _query(state, filters)
        return await _in_parts(
            lambda after: self._app.bulk.jobs(action, query, after=after, dry_run=dry_run), progress
        )

    # -- schedules ---------------------------------------------------------------------------------
    async def schedule(
        self,
        name: str,
        target: Target,
        when: When,
        *,
        replace: bool = False,
        paused: bool = False,
        payload: Any,
        **options: Any,
    ) -> ScheduleView:
        schedules, (task, spec) = self._app.schedules, self._drafts.target(target)
        given, by = {**_given(options), "payload": payload}, self._author
        if spec is None:
            new = NewSchedule(name, task, when, **given)
            return await schedules.create(new, replace=replace, author=by, paused=paused)
        draft = await self._drafts.schedule(name, task, spec, when, given)
        return await self._schedule(await schedules.put(draft, replace=replace, author=by, paused=paused))

    async def plan_new_schedule(
        self,
        name: str,
        target: Target,
        when: When,
        *,
        paused: bool = False,
        payload: Any,
        horizon: Duration | None = None,
        count: int | None = None,
        **options: Any,
    ) -> PlanView:
        task, spec = self._drafts.target(target)
        draft = await self._drafts.schedule(name, task, spec, when, {**_given(options), "payload": payload})
        known = await self._app.schedules.declared(draft)
        edit = ScheduleEdit(draft if known is None else known.draft, True if paused else None)
        return PlanView.of(await self._app.previews.plan(known, edit, horizon or HORIZON), count)

    async def edit_schedule(
        self, reference: str, changes: Mapping[str, Any], *, version: int | None = None
    ) -> ScheduleView:
        schedules = self._app.schedules

        async def work(known: Schedule) -> Schedule:
            return await schedules.apply_edit(known, await self._drafts.edit(known, changes), self._author)

        return await self._schedule(await schedules.at_version(reference, version, work))

    async def get_schedule(self, reference: str) -> ScheduleView:
        return await self._schedule(await self._app.schedules.find(reference))

    async def schedules(
        self, *, limit: int = 100, after: str | None = None, **filters: Any
    ) -> list[ScheduleView]:
        rows = await self._app.schedules.page(ScheduleFilter(self._app.tenant, **filters), limit, after)
        now = await self._app.now()
        return [ScheduleView.of(row, now) for row in rows]

    async def pause(self, reference: str, note: str | None = None) -> ScheduleView:
        name = await self._name(reference)
        await self._app.pause(name, note, author=self._author)
        return await self.get_schedule(name)

    async def resume(self, reference: str) -> ScheduleView:
        name = await self._name(reference)
        await self._app.resume(name, author=self._author)
        return await self.get_schedule(name)

    async def trigger(self, reference: str) -> JobView:
        return await self.get_job((await self._app.trigger(await self._name(reference))).id)

    async def remove(self, reference: str, *, version: int | None = None) -> None:
        await self._app.schedules.remove_version(reference, expect_version=version, author=self._author)

    async def why_schedule(self, reference: str) -> WhyView:
        return WhyView.of(await self._app.why.schedule(reference))

    async def preview_schedule(
        self, reference: str, *, count: int = 10, after: datetime | None = None
    ) -> PreviewView:
        return PreviewView.of(await self._app.previews.schedule(reference, count=count, after=after))

    async def plan_schedule(
        self,
        reference: str,
        changes: Mapping[str, Any],
        *,
        horizon: Duration | None = None,
        count: int | None = None,
    ) -> PlanView:
        known = await self._app.schedules.find(reference)
        edit = await self._drafts.edit(known, changes)
        return PlanView.of(await self._app.previews.plan(known, edit, horizon or HORIZON), count)

    async def schedule_versions(self, reference: str, *, limit: int = 20) -> list[VersionView]:
        return [VersionView.of(version) for version in await self._app.versions(reference, limit=limit)]

    async def restore_schedule(self, reference: str, version: int) -> ScheduleView:
        return await self._schedule(await self._app.versions.restore(reference, version, author=self._author))

    async def backfill(
        self,
        reference: str,
        start: datetime,
        end: datetime | None = None,
        *,
        rate: str | None = None,
        limit: int | None = None,
    ) -> Backfilled:
        return Backfilled.of(
            await self._app.backfill(reference, start, end, rate=rate, **_given({"limit": limit}))
        )

    async def bulk_schedules(
        self,
        action: str,
        *,
        dry_run: bool = False,
        note: str | None = None,
        progress: Progress | None = None,
        **filters: Any,
    ) -> BulkResult:
        wanted, author = ScheduleFilter(self._app.tenant, **filters), self._author
        return await _in_parts(
            lambda after: self._app.bulk.schedules(
                action, wanted, after=after, dry_run=dry_run, note=note, author=author
            ),
            progress,
        )

    # -- the fleet ---------------------------------------------------------------------------------
    async def queues(self, *, limit: int = 1_000, after: str | None = None) -> list[QueueView]:
        wanted = QueueFilter(after=after or "", limit=limit)
        return [QueueView.of(row, row.counts) for row in await self._app.queues.counted(wanted)]

    async def pause_queue(self, name: str, note: str | None = None) -> QueueView:
        await self._app.pause_queue(name, note)
        return await self._queue(name)

    async def resume_queue(self, name: str) -> QueueView:
        await self._app.resume_queue(name)
        return await self._queue(name)

    async def limit_queue(
        self, name: str, max_running: int | None = None, rate: str | None = None
    ) -> QueueView:
        await self._app.limit_queue(name, max_running, rate)
        return await self._queue(name)

    async def broker(self) -> BrokerView:
        if self._settings.queue is not None:
            self._app.use_queue(self._settings.queue)
        return await self._app.read_broker()

    async def leases(self) -> list[LeaseView]:
        return [LeaseView.of(row) for row in await self._app.nodes.leases()]

    async def now(self) -> datetime:
        return to_datetime(await self._app.store.time())

    async def keys(self, *, limit: int = 1_000) -> list[KeyView]:
        """Of all tenants."""
        return [KeyView.of(row) for row in await self._app.keys(limit=limit, every_tenant=True)]

    async def create_key(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        expires_in: Duration | None = None,
        tenant: str | None = None,
        rate: str | None = None,
        queues: Sequence[str] = (),
    ) -> CreatedKey:
        keys = self._app.for_tenant(tenant or self._app.tenant).keys
        made = await keys.create(name, scopes, expires_in=expires_in, rate=rate, queues=queues)
        return CreatedKey.with_text(made.key, made.text)

    async def revoke_key(self, prefix: str) -> None:
        await self._app.keys.revoke(prefix, every_tenant=True)

    async def stats(self, since: Duration | None = None, step: Duration | None = None) -> Stats:
        return await self._app.stats(**_given({"since": since, "step": step}))

    async def events(
        self, types: Sequence[str] | None = None, *, after: int | None = None
    ) -> AsyncIterator[EventView]:
        async for event in self._app.events(after=after, **_given({"types": types})):
            yield EventView(id=event.id, kind=event.kind, data=event.data)

    # -- alerts ------------------------------------------------------------------------------------
    async def snooze_alert(
        self, alert_id: str, for_: Duration = "1h", *, note: str | None = None
    ) -> MuteView:
        return await self.alerts.snooze(alert_id, for_, note=note, author=self._author)

    async def set_alert_channel(self, name: str, **settings: Any) -> AlertChannelView:
        self._app.use_secret_keys(key_ring(self._settings, self._app.store))
        return await self.alerts.set_channel(name, **settings)

    async def mute_alerts(
        self,
        for_: Duration,
        *,
        start: datetime | None = None,
        condition: str | None = None,
        subject: str | None = None,
        note: str | None = None,
    ) -> MuteView:
        return await self.alerts.mute(
            for_=for_, start=start, condition=condition, subject=subject, note=note, author=self._author
        )

    def _seal(self) -> Seal | None:
        """With the keys of the nodes on this store."""
        return seal_for(key_ring(self._settings, self._app.store), self._app.tenant)

    # -- rows as views -----------------------------------------------------------------------------
    async def _job(self, row: Job) -> JobView:
        return JobView.of(row, await self._app.store.list_attempts(row.id))

    async def _schedule(self, row: Schedule) -> ScheduleView:
        return await self._app.schedules.view(row)

    async def _name(self, reference: str) -> str:
        return (await self._app.schedules.find(reference)).draft.name

    async def _queue(self, name: str) -> QueueView:
        [row] = await self._app.queues.counted(QueueFilter(name=name))
        return QueueView.of(row, row.counts)


async def _in_parts(call: Callable[[Any], Awaitable[Bulk[Any]]], progress: Progress | None) -> BulkResult:
    """Repeat the call, which handles a bounded number, until all is done."""
    total, after = BulkResult(), None
    while True:
        part = await call(after)
        total, after = (
            total.followed_by(BulkResult.of(part, None if part.next is None else str(part.next))),
            part.next,
        )
        if progress is not None:
            progress(total)
        if after is None:
            return total


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _query(state: str | None, filters: Mapping[str, Any]) -> JobQuery:
    instants: dict[str, Any] = {
        name: to_micros(value) if isinstance(value, datetime) else value for name, value in filters.items()
    }
    return JobQuery(None if state is None else check_state(state), **instants)


def user_name() -> str | None:
    """The user at the terminal, as the author of changes."""
    try:
        return getuser()
    except (KeyError, OSError):
        return None

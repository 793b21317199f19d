"""A store that tells observers what its callers changed through it, so that no command can forget to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from duetime.model.events import JobChanged, JobsSubmitted, QueueChanged, ScheduleChanged
from duetime.model.instant import Micros
from duetime.model.job import CancelReply, JobDraft
from duetime.model.limit import Queue
from duetime.model.schedule import Change, Schedule, ScheduleDraft
from duetime.model.unique import Admission, Rule
from duetime.observer import Observer
from duetime.store import Store

CANCELS = {CancelReply.CANCELLED: "cancelled", CancelReply.REQUESTED: "stopping"}


class TellingStore:
    """The verbs below are told of once they are done; every other one is the store's own."""

    def __init__(self, store: Store, tell: Observer) -> None:
        self._store = store
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    # -- jobs ---------------------------------------------------------------------------------------------------------
    async def add_jobs(self, drafts: Sequence[JobDraft], again: bool = False) -> list[UUID]:
        stored = await self._store.add_jobs(drafts, again)
        self._tell(JobsSubmitted(drafts, stored))
        return stored

    async def add_unique(self, draft: JobDraft, rule: Rule, again: bool = False) -> Admission:
        admission = await self._store.add_unique(draft, rule, again)
        self._tell(JobsSubmitted([draft], [admission.id]))
        return admission

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        reply = await self._store.cancel_job(tenant, job_id, reason)
        if reply in CANCELS:
            self._tell(JobChanged(tenant, job_id, CANCELS[reply]))
        return reply

    async def change_job(self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None) -> bool:
        return self._changed(await self._store.change_job(tenant, job_id, due_at, priority), tenant, job_id, "moved")

    async def revive_job(self, tenant: str, job_id: UUID, draft: JobDraft) -> bool:
        done = self._changed(await self._store.revive_job(tenant, job_id, draft), tenant, job_id, "retried")
        if done:
            self._tell(JobsSubmitted([draft], [draft.id]))
        return done

    async def discard_job(self, tenant: str, job_id: UUID) -> bool:
        return self._changed(await self._store.discard_job(tenant, job_id), tenant, job_id, "discarded")

    def _changed(self, done: bool, tenant: str, job_id: UUID, action: str) -> bool:
        if done:
            self._tell(JobChanged(tenant, job_id, action))
        return done

    # -- queues and schedules -----------------------------------------------------------------------------------------
    async def set_queue(self, queue: Queue) -> None:
        await self._store.set_queue(queue)
        self._tell(QueueChanged(queue))

    async def put_schedule(
        self, draft: ScheduleDraft, next_fire_time: Micros | None, expect_version: int | None, author: str | None = None
    ) -> Schedule | None:
        stored = await self._store.put_schedule(draft, next_fire_time, expect_version, author)
        fresh = stored is not None and stored.id == draft.id and not expect_version
        return self._told(stored, Change.CREATED if fresh else Change.REPLACED)

    async def pause_schedule(self, *arguments: Any, **options: Any) -> Schedule | None:
        return self._told(await self._store.pause_schedule(*arguments, **options), Change.PAUSED)

    async def resume_schedule(self, *arguments: Any, **options: Any) -> Schedule | None:
        resumed = await self._store.resume_schedule(*arguments, **options)
        return resumed if resumed is None or resumed.paused else self._told(resumed, Change.RESUMED)  # left as it was: see there

    async def remove_schedule(self, *arguments: Any, **options: Any) -> Schedule | None:
        return self._told(await self._store.remove_schedule(*arguments, **options), Change.REMOVED)

    def _told(self, schedule: Schedule | None, change: Change) -> Schedule | None:
        if schedule is not None:
            self._tell(ScheduleChanged(schedule, change))
        return schedule

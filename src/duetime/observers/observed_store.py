"""A store that reports to observers what its callers change through it, so that no command can forget to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from duetime.model.events import JobChanged, JobsSubmitted, QueueChanged, ScheduleChanged
from duetime.model.instant import Micros
from duetime.model.job import CancelReply, JobDraft
from duetime.model.limit import Queue
from duetime.model.schedule import Change, Schedule, change_of
from duetime.model.unique import Admission, Rule
from duetime.observer import Observer
from duetime.store import ScheduleState, Store

CANCELS = {CancelReply.CANCELLED: "cancelled", CancelReply.REQUESTED: "stopping"}


class ObservedStore:
    """The verbs below emit an event when they are done. All other verbs go straight to the store."""

    def __init__(self, store: Store, emit: Observer) -> None:
        self._store = store
        self._emit = emit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    # -- jobs
    async def add_jobs(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        stored = await self._store.add_jobs(drafts, is_retry)
        self._emit(JobsSubmitted(drafts, stored))
        return stored

    async def add_unique(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        admission = await self._store.add_unique(draft, rule, is_retry)
        self._emit(JobsSubmitted([draft], [admission.id]))
        return admission

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        reply = await self._store.cancel_job(tenant, job_id, reason)
        if reply in CANCELS:
            self._emit(JobChanged(tenant, job_id, CANCELS[reply]))
        return reply

    async def reschedule_job(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> bool:
        return self._job_changed(
            await self._store.reschedule_job(tenant, job_id, due_at, priority), tenant, job_id, "rescheduled"
        )

    async def resolve_dead_job(self, tenant: str, job_id: UUID, retry: JobDraft | None) -> bool:
        done = await self._store.resolve_dead_job(tenant, job_id, retry)
        if done and retry is not None:
            self._emit(JobsSubmitted([retry], [retry.id]))
        return self._job_changed(done, tenant, job_id, "discarded" if retry is None else "retried")

    def _job_changed(self, done: bool, tenant: str, job_id: UUID, action: str) -> bool:
        if done:
            self._emit(JobChanged(tenant, job_id, action))
        return done

    async def set_queue(self, queue: Queue) -> None:
        await self._store.set_queue(queue)
        self._emit(QueueChanged(queue))

    async def write_schedule(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None = None,
    ) -> Schedule | None:
        before = (
            None if state is None or expect_version == 0 else await self._store.get_schedule(tenant, name)
        )
        stored = await self._store.write_schedule(tenant, name, state, expect_version, author)
        if stored is not None:
            change = (
                Change.REMOVED
                if state is None
                else Change.CREATED
                if before is None
                else change_of(before, stored)
            )
            self._emit(ScheduleChanged(stored, change))
        return stored

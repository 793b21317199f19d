"""What commands ask for, wherever it is: of an app on its store (`Local`), or of a service over HTTP (`duetime.AsyncClient`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from duetime.model.duration import Duration
from duetime.model.retry import Retry
from duetime.model.schedule import Missed
from duetime.model.when import When
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

JobId = UUID | str
Label = tuple[str, str]
Target = str | Mapping[str, Any]  # a task's name, or an HTTP target
Progress = Callable[[Bulk], None]


class Access(Protocol):
    # -- jobs ---------------------------------------------------------------------------------------------------------
    async def submit(
        self, target: Target, payload: Any = ..., *, at: datetime | None = None, delay: Duration | None = None, queue: str | None = None,
        priority: int | None = None, timeout: Duration | None = None, retry: Retry | None = None, unique_key: str | None = None,
        on_conflict: str | None = None, owner: str | None = None, labels: Mapping[str, str] | None = None,
    ) -> Submitted: ...  # fmt: skip

    async def get_job(self, job_id: JobId) -> Job: ...

    async def jobs(
        self, *, state: str | None = None, queue: str | None = None, owner: str | None = None, schedule: str | None = None,
        label: Label | None = None, target: str | None = None, limit: int = 100,
    ) -> list[JobSummary]: ...  # fmt: skip

    async def cancel_job(self, job_id: JobId, reason: str | None = None) -> Job: ...

    async def move_job(
        self, job_id: JobId, *, at: datetime | None = None, delay: Duration | None = None, priority: int | None = None
    ) -> Job: ...

    async def run_job(self, job_id: JobId) -> Job: ...

    async def retry_job(self, job_id: JobId, payload: Any = None) -> Job: ...

    async def discard_job(self, job_id: JobId) -> None: ...

    async def wait_for(self, job_id: JobId, timeout: Duration | None = None) -> Job: ...

    async def why_job(self, job_id: JobId) -> Why: ...

    async def dead_letters(self, *, target: str | None = None, error: str | None = None, limit: int = 100) -> list[JobSummary]: ...

    async def dead_groups(self) -> DeadGroups: ...

    async def bulk_jobs(
        self, action: str, *, state: str | None = None, queue: str | None = None, owner: str | None = None, schedule: str | None = None,
        label: Label | None = None, target: str | None = None, error: str | None = None, dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Bulk: ...  # fmt: skip

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def schedule(
        self, name: str, target: Target, when: When, *, replace: bool = False, payload: Any = ..., overlap: str | None = None,
        missed: Missed | None = None, jitter: Duration | None = None, start_at: datetime | None = None, end_at: datetime | None = None,
        max_runs: int | None = None, queue: str | None = None, priority: int | None = None, owner: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Schedule: ...  # fmt: skip

    async def edit_schedule(self, reference: str, changes: Mapping[str, Any], *, version: int | None = None) -> Schedule: ...

    async def get_schedule(self, reference: str) -> Schedule: ...

    async def schedules(
        self, *, text: str | None = None, paused: bool | None = None, owner: str | None = None, label: Label | None = None,
        target: str | None = None, queue: str | None = None, limit: int = 100, after: str | None = None,
    ) -> list[Schedule]: ...  # fmt: skip

    async def pause(self, reference: str, note: str | None = None) -> Schedule: ...

    async def resume(self, reference: str) -> Schedule: ...

    async def trigger(self, reference: str) -> Job: ...

    async def remove(self, reference: str) -> None: ...

    async def why_schedule(self, reference: str) -> Why: ...

    async def preview_schedule(self, reference: str, *, count: int = 10, after: datetime | None = None) -> Preview: ...

    async def plan_schedule(
        self, reference: str, changes: Mapping[str, Any], *, horizon: Duration | None = None, count: int | None = None
    ) -> Plan: ...

    async def schedule_versions(self, reference: str, *, limit: int = 20) -> list[Version]: ...

    async def restore_schedule(self, reference: str, version: int) -> Schedule: ...

    async def backfill(
        self, reference: str, start: datetime, end: datetime | None = None, *, rate: str | None = None, limit: int | None = None
    ) -> Backfilled: ...

    async def bulk_schedules(
        self, action: str, *, text: str | None = None, paused: bool | None = None, owner: str | None = None, label: Label | None = None,
        target: str | None = None, queue: str | None = None, dry_run: bool = False, note: str | None = None,
        progress: Progress | None = None,
    ) -> Bulk: ...  # fmt: skip

    # -- the fleet ----------------------------------------------------------------------------------------------------
    async def queues(self) -> list[Queue]: ...

    async def pause_queue(self, name: str, note: str | None = None) -> Queue: ...

    async def resume_queue(self, name: str) -> Queue: ...

    async def limit_queue(self, name: str, most: int | None = None, rate: str | None = None) -> Queue: ...

    async def known_tasks(self) -> list[KnownTask]: ...

    async def nodes(self) -> list[Node]: ...

    async def stats(self, since: Duration | None = None, step: Duration | None = None) -> Stats: ...

    def events(self, types: Sequence[str] | None = None, *, after: int | None = None) -> AsyncIterator[Event]: ...

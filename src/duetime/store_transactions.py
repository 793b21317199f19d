"""Transactions in which others than the store write, too: a task's own, and those of callers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import CancelReply, Job, JobDraft
from duetime.model.schedule import Firing, Schedule
from duetime.model.settle import Settlement
from duetime.model.stored import Record
from duetime.store_values import ScheduleState

RunOnOwner = Callable[[Callable[[], Any]], Awaitable[Any]]


class TaskTransaction(Protocol):
    """A transaction in the store's own database in which a task writes."""

    connection: Any  # the driver's own for PostgreSQL; for SQLite one with the same verbs

    async def finish(self, settlement: Settlement) -> bool:
        """Write the settlement in the transaction and commit both. False: the job no longer runs under this
        attempt number, and everything was rolled back. After a StoreError it is unknown whether it was
        committed."""
        ...

    async def abandon(self) -> bool:
        """Roll back. May be called at any time, also after `finish`. False: the server had already ended the
        session, so it was the store that failed, whatever error the task got."""
        ...


class CallerTransaction(Protocol):
    """A caller's own connection, in whose open transaction jobs are stored: visible if and when the caller
    commits."""

    blocking: bool  # a connection without async: use `add_jobs_now`, on the thread that owns the connection

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]: ...

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]: ...

    def verbs(self, run: RunOnOwner) -> CallerStore:
        """Verbs of the store that write in this transaction. `run` calls a function on the thread that owns a
        blocking connection. Hints are sent with the commit, or other processes look by themselves."""
        ...


class CallerStore(Protocol):
    """As `Store` describes them, but nothing is committed or repeated here, and after an error of the
    database the caller has to roll back."""

    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None: ...

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply: ...

    async def reschedule_job(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> bool: ...

    async def write_schedule(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None = None,
    ) -> Schedule | None: ...

    async def get_schedule(self, tenant: str, name: str | UUID) -> Schedule | None: ...

    async def fire(self, firings: Sequence[Firing]) -> int: ...

    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None: ...

    async def list_records(
        self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None
    ) -> list[Record]: ...

    async def put_record(
        self,
        kind: str,
        tenant: str,
        key: str,
        value: bytes | None,
        expect: int | None = None,
        expires_at: Micros | None = None,
    ) -> int: ...

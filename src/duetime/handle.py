"""Handles and views of jobs and schedules. A handle shows the state last read; `refresh` reads it again."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from duetime.errors import JobFailed, NotOpen, StoreUnavailable
from duetime.model.codec import decode
from duetime.model.duration import Duration
from duetime.model.instant import Micros, to_datetime
from duetime.model.job import CancelReply, Job, State
from duetime.model.views import AttemptView, OutputView, ScheduleView


class JobApi(Protocol):
    """The calls a handle makes."""

    async def read_job(self, job_id: UUID | str) -> Job:
        """The row."""

    async def wait_for(self, job_id: UUID | str, timeout: Duration | None = None) -> Job:
        """The row once it is final."""

    async def cancel_job(self, job_id: UUID | str, reason: str = ...) -> CancelReply:
        """Cancel it, or ask its worker to."""

    async def reschedule_job(
        self,
        job_id: UUID | str,
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        priority: int | None = None,
    ) -> JobHandle:
        """Change when it runs."""

    async def retry_job(self, job_id: UUID | str, payload: Any = None) -> JobHandle:
        """Run a dead letter or a skipped job again."""

    async def read_attempts(self, job_id: UUID | str) -> list[AttemptView]:
        """Its failed attempts."""

    async def job_output(
        self, job_id: UUID | str, *, attempt: int | None = None, after: int = 0
    ) -> OutputView:
        """What it has logged and printed."""


__all__ = ["AttemptView", "JobHandle", "Progress", "ScheduleView"]


class JobHandle:
    """One job. Right after `submit` only its id is known; `refresh` and `wait` read the rest."""

    __slots__ = ("_api", "_job", "conflict", "id")

    def __init__(
        self, api: JobApi, job_id: UUID, job: Job | None = None, conflict: str | None = None
    ) -> None:
        self._api = api
        self._job = job
        self.id = job_id
        # Set by `submit` if a job with the same unique key existed. "skipped" or "rescheduled": this is the
        # existing job.
        # "replaced": this is the new one.
        self.conflict = conflict

    def through(self, api: JobApi) -> JobHandle:
        """From now on make the calls through this app."""
        self._api = api
        return self

    @property
    def created(self) -> bool:
        """Whether `submit` stored a new job; if not, this is the existing one."""
        return self.conflict is None or self.conflict == "replaced"

    async def refresh(self) -> JobHandle:
        self._job = await self._api.read_job(self.id)
        return self

    async def wait(self, timeout: Duration | None = None, *, raise_on_failure: bool = False) -> JobHandle:
        """Wait until the job is final. Raises WaitTimeout after `timeout`; the job continues. With
        `raise_on_failure`, any state but succeeded raises JobFailed."""
        self._job = job = await self._api.wait_for(self.id, timeout)
        if raise_on_failure and job.state is not State.SUCCEEDED:
            raise JobFailed(
                f"job {job.id} ({job.target}) is {job.state}: {_last_line(job.error)}",
                job.id,
                job.state,
                job.error,
            )
        return self

    async def cancel(self, reason: str = "cancelled by the caller") -> CancelReply:
        """Cancel it before it starts, or ask its worker to stop it. Raises JobFinished if it has already
        finished."""
        reply = await self._api.cancel_job(self.id, reason)
        with suppress(StoreUnavailable):  # it is cancelled, even if it cannot be read afterwards
            await self.refresh()
        return reply

    async def reschedule(
        self, *, at: datetime | None = None, delay: Duration | None = None, priority: int | None = None
    ) -> JobHandle:
        """Change the due time or priority of a pending job."""
        self._job = (await self._api.reschedule_job(self.id, at=at, delay=delay, priority=priority)).record
        return self

    async def retry(self, payload: Any = None) -> JobHandle:
        """Run a dead letter or a skipped job again as a new job linked to it, with its payload unless another
        one is given."""
        return await self._api.retry_job(self.id, payload)

    async def attempts(self) -> list[AttemptView]:
        """The attempts that did not succeed, oldest first."""
        return await self._api.read_attempts(self.id)

    async def output(self, *, attempt: int | None = None, after: int = 0) -> OutputView:
        """What an attempt has logged and printed: the latest attempt unless another one is named; lines after
        this number only."""
        return await self._api.job_output(self.id, attempt=attempt, after=after)

    @property
    def state(self) -> State:
        return State.PENDING if self._job is None else self._job.state

    @property
    def attempt(self) -> int:
        return 0 if self._job is None else self._job.attempt

    @property
    def failures(self) -> int:
        return 0 if self._job is None else self._job.failures

    @property
    def result(self) -> Any:
        """The return value of the task; None until it has succeeded."""
        return None if self._job is None or self._job.result is None else decode(self._job.result)

    @property
    def error(self) -> str | None:
        """The error of the last failed attempt, why the job was skipped or cancelled, or why it succeeded
        without a result."""
        return None if self._job is None else self._job.error

    @property
    def progress(self) -> Progress | None:
        """The progress that the task reported last; None before the first report."""
        stored = self.record.progress
        return None if stored is None else Progress(**decode(stored))

    @property
    def checkpoint(self) -> Any:
        """The checkpoint that the task saved last; None before the first."""
        stored = self.record.checkpoint
        return None if stored is None else decode(stored)

    @property
    def payload(self) -> Any:
        return decode(self.record.payload)

    @property
    def labels(self) -> dict[str, str]:
        stored = self.record.labels
        return {} if stored is None else decode(stored)

    @property
    def task(self) -> str:
        return self.record.target

    @property
    def schedule(self) -> str | None:
        return self.record.schedule

    @property
    def queue(self) -> str:
        return self.record.queue

    @property
    def priority(self) -> int:
        return self.record.priority

    @property
    def fire_time(self) -> datetime:
        return to_datetime(self.record.fire_time)

    @property
    def due_at(self) -> datetime:
        return to_datetime(self.record.due_at)

    @property
    def claimed_at(self) -> datetime | None:
        """When a node claimed it for its latest attempt. It may have started later."""
        return _datetime(self.record.claimed_at)

    @property
    def started_at(self) -> datetime | None:
        """When that attempt started; known once it has ended."""
        return _datetime(self.record.started_at)

    @property
    def finished_at(self) -> datetime | None:
        return _datetime(self.record.finished_at)

    @property
    def record(self) -> Job:
        """The row last read."""
        if self._job is None:
            raise NotOpen(f"job {self.id} has not been read yet: await job.refresh() first")
        return self._job

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.state}>"


class Progress(NamedTuple):
    done: float
    total: float | None = None
    note: str | None = None


def _last_line(error: str | None) -> str:
    """The last line of a traceback names the error."""
    return (error or "no reason given").strip().splitlines()[-1]


def _datetime(micros: Micros | None) -> datetime | None:
    return None if micros is None else to_datetime(micros)

"""Handles: what a caller holds of a job or a schedule. A handle shows the last state seen; `refresh` looks again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from duetime.errors import JobFailed, NotOpen, StoreUnavailable
from duetime.model.attempt import Attempt, Ending
from duetime.model.codec import decode
from duetime.model.duration import Duration
from duetime.model.instant import Micros, to_datetime
from duetime.model.job import CancelReply, Job, State
from duetime.model.schedule import Schedule
from duetime.model.standing import standing
from duetime.model.when import When

if TYPE_CHECKING:
    from duetime.app.client import Client


class JobHandle:
    """One job. Right after `submit` it knows only its id; everything else is read by `refresh` or `wait`."""

    __slots__ = ("_app", "_job", "conflict", "id")

    def __init__(self, app: Client, job_id: UUID, job: Job | None = None, conflict: str | None = None) -> None:
        self._app = app
        self._job = job
        self.id = job_id
        # Set by `submit` when another job with the same unique key was in the way: "skipped" or "rescheduled", and this is that other
        # job; "replaced", and this is the new one.
        self.conflict = conflict

    @property
    def created(self) -> bool:
        """Whether `submit` stored a new job; if not, this is the one that answers for it."""
        return self.conflict is None or self.conflict == "replaced"

    async def refresh(self) -> JobHandle:
        self._job = await self._app.read_job(self.id)
        return self

    async def wait(self, timeout: Duration | None = None, *, raise_on_failure: bool = False) -> JobHandle:
        """Until the job is final. Raises WaitTimeout when that takes too long; the job goes on all the same. With `raise_on_failure`
        anything but success raises JobFailed."""
        self._job = job = await self._app.wait_for(self.id, timeout)
        if raise_on_failure and job.state is not State.SUCCEEDED:
            raise JobFailed(f"job {job.id} ({job.target}) is {job.state}: {_last_line(job.error)}", job.id, job.state, job.error)
        return self

    async def cancel(self, reason: str = "cancelled by the caller") -> CancelReply:
        """End it before it starts, or ask its worker to stop it. Raises JobFinished when it is too late."""
        reply = await self._app.cancel_job(self.id, reason)
        with suppress(StoreUnavailable):  # it is cancelled, whether or not it can be looked at afterwards
            await self.refresh()
        return reply

    async def move(self, *, at: datetime | None = None, delay: Duration | None = None, priority: int | None = None) -> JobHandle:
        """Another due time or priority, while it is pending."""
        self._job = (await self._app.move_job(self.id, at=at, delay=delay, priority=priority)).record
        return self

    async def retry(self, payload: Any = None) -> JobHandle:
        """Run a dead letter again, as a new job linked to it; with another payload, if one is given."""
        return await self._app.retry_job(self.id, payload)

    async def attempts(self) -> list[AttemptView]:
        """Those that ended badly, oldest first."""
        return await self._app.read_attempts(self.id)

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
        """What the task returned; None until it succeeded."""
        return None if self._job is None or self._job.result is None else decode(self._job.result)

    @property
    def error(self) -> str | None:
        """How the last attempt that ended badly ended, or why it was skipped or cancelled."""
        return None if self._job is None else self._job.error

    @property
    def progress(self) -> Progress | None:
        """How far the task says it is; None until it says something."""
        stored = self.record.progress
        return None if stored is None else Progress(**decode(stored))

    @property
    def checkpoint(self) -> Any:
        """What the task saved last for its next attempt; None before the first."""
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
        """When a node took it for its latest attempt; it may wait there for its turn."""
        return _moment(self.record.claimed_at)

    @property
    def started_at(self) -> datetime | None:
        """When that attempt began; known once it has ended."""
        return _moment(self.record.started_at)

    @property
    def finished_at(self) -> datetime | None:
        return _moment(self.record.finished_at)

    @property
    def record(self) -> Job:
        """The row as last read."""
        if self._job is None:
            raise NotOpen(f"job {self.id} has not been read yet: await job.refresh() first")
        return self._job

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.state}>"


class Progress(NamedTuple):
    done: float
    total: float | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptView:
    """An attempt that ended badly."""

    attempt: int
    ending: Ending
    node: int | None
    started_at: datetime | None  # None: it never started
    finished_at: datetime
    error: str | None

    @staticmethod
    def of(attempt: Attempt) -> AttemptView:
        started_at, finished_at = _moment(attempt.started_at), to_datetime(attempt.finished_at)
        return AttemptView(attempt.attempt, attempt.ending, attempt.node, started_at, finished_at, attempt.error)


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule as stored."""

    id: UUID
    name: str
    version: int
    when: When
    task: str
    payload: Any
    queue: str
    priority: int
    overlap: str
    paused: bool
    pause_note: str | None
    runs: int
    next_fire_time: datetime | None
    last_fire_time: datetime | None

    @staticmethod
    def of(schedule: Schedule, now: Micros) -> ScheduleView:
        draft, stands = schedule.draft, standing(schedule, now)
        return ScheduleView(
            schedule.id, draft.name, schedule.version, draft.when, draft.target, decode(draft.payload), draft.queue, draft.priority,
            draft.overlap or "allow", schedule.paused, schedule.pause_note, stands.runs,
            _moment(stands.next_fire_time), _moment(stands.last_fire_time),
        )  # fmt: skip


def _last_line(error: str | None) -> str:
    """Of a traceback, the line that says what went wrong."""
    return (error or "no reason given").strip().splitlines()[-1]


def _moment(micros: Micros | None) -> datetime | None:
    return None if micros is None else to_datetime(micros)

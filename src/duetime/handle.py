"""Handles: what a caller holds of a job or a schedule. A handle shows the last state seen; `refresh` looks again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from duetime.errors import NotOpen
from duetime.model.codec import decode
from duetime.model.duration import Duration
from duetime.model.instant import Micros, to_datetime
from duetime.model.job import CancelReply, Job, State
from duetime.model.schedule import Schedule
from duetime.model.when import When

if TYPE_CHECKING:
    from duetime.app import App


class JobHandle:
    """One job. Right after `submit` it knows only its id; everything else is read by `refresh` or `wait`."""

    __slots__ = ("_app", "_job", "created", "id")

    def __init__(self, app: App, job_id: UUID, job: Job | None = None, created: bool = True) -> None:
        self._app = app
        self._job = job
        self.id = job_id
        self.created = created  # False: the unique key was taken, and this is the job that holds it

    async def refresh(self) -> JobHandle:
        self._job = await self._app.read_job(self.id)
        return self

    async def wait(self, timeout: Duration | None = None) -> JobHandle:
        """Until the job is final. Raises WaitTimeout when that takes too long; the job goes on all the same."""
        self._job = await self._app.wait_for(self.id, timeout)
        return self

    async def cancel(self, reason: str = "cancelled by the caller") -> CancelReply:
        """End it before it starts, or ask its worker to stop it. Raises JobFinished when it is too late."""
        return await self._app.cancel_job(self.id, reason)

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
    def started_at(self) -> datetime | None:
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
    def of(schedule: Schedule) -> ScheduleView:
        draft = schedule.draft
        return ScheduleView(
            schedule.id, draft.name, schedule.version, draft.when, draft.target, decode(draft.payload), draft.queue, draft.priority,
            draft.overlap or "allow", schedule.paused, schedule.pause_note, schedule.runs,
            None if schedule.paused else _moment(schedule.next_fire_time), _moment(schedule.last_fire_time),
        )  # fmt: skip


def _moment(micros: Micros | None) -> datetime | None:
    return None if micros is None else to_datetime(micros)


class Waiters:
    """Who waits for which job in this process; told at once when a worker here settles it."""

    def __init__(self) -> None:
        self._waiting: dict[UUID, list[Callable[[], None]]] = {}

    def add(self, job_id: UUID, wake: Callable[[], None]) -> None:
        self._waiting.setdefault(job_id, []).append(wake)

    def remove(self, job_id: UUID, wake: Callable[[], None]) -> None:
        self._waiting[job_id].remove(wake)
        if not self._waiting[job_id]:
            del self._waiting[job_id]

    def settled(self, job_ids: list[UUID]) -> None:
        if self._waiting:
            for job_id in job_ids:
                for wake in self._waiting.get(job_id, ()):
                    wake()

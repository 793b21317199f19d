"""The worker protocol: what remote workers get as answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from duetime.model.instant import Micros, to_datetime
from duetime.model.job import Claimed
from duetime.model.views.fields import ANY_JSON, about, decoded, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """A remote worker that joined."""

    worker: int = field(metadata=about("Its id, for all other requests.", 7))
    queues: list[str]
    tasks: list[str]
    lease_seconds: float = field(
        metadata=about("Without a heartbeat for this long, it is dead and its jobs run elsewhere.", 30)
    )
    heartbeat_seconds: float = field(metadata=about("Send a heartbeat this often.", 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedJob:
    """A job to run now."""

    id: UUID
    attempt: int = field(metadata=about("Send it with every report on this job.", 1))
    task: str
    payload: Any = field(default=None, metadata=ANY_JSON)
    queue: str
    priority: int
    schedule: str | None = None
    fire_time: datetime
    due_at: datetime
    failures: int = field(default=0, metadata=about("Attempts that have failed so far."))
    deadline: datetime | None = field(
        default=None, metadata=about("When the attempt times out; null: never.")
    )
    checkpoint: Any = field(default=None, metadata=about("What an earlier attempt saved last; any JSON."))
    idempotency_key: str = field(metadata=about("The same in every attempt."))

    @staticmethod
    def of(row: Claimed, deadline: Micros | None) -> ClaimedJob:
        return ClaimedJob(
            id=row.id,
            attempt=row.attempt,
            task=row.target,
            payload=decoded(row.payload),
            queue=row.queue,
            priority=row.priority,
            schedule=row.schedule,
            fire_time=to_datetime(row.fire_time),
            due_at=to_datetime(row.due_at),
            failures=row.failures,
            deadline=moment(deadline),
            checkpoint=decoded(row.checkpoint),
            idempotency_key=str(row.id),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedJobs:
    jobs: list[ClaimedJob] = field(metadata=about("Empty if none was due in time."))


@dataclass(frozen=True, slots=True, kw_only=True)
class StopNotice:
    """An attempt to stop."""

    id: UUID
    attempt: int
    reason: Literal["cancelled", "timed_out", "lost"] = field(
        metadata=about("lost: the attempt is no longer the worker's own, and its reports are refused.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    stop: list[StopNotice]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedReport:
    """The attempt does not run under this worker, or no longer: the report changed nothing."""

    id: UUID
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReply:
    refused: list[RefusedReport] = field(metadata=about("All other reports are written, durably."))

"""Jobs as the service shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.model.attempt import Ending
from duetime.model.job import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt that ended badly."""

    attempt: int
    ending: Ending
    node: int | None = None
    started_at: datetime | None = None
    finished_at: datetime
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    id: UUID
    state: State
    target: dict[str, Any]
    schedule: str | None = None
    fire_time: datetime
    due_at: datetime
    queue: str
    priority: int
    attempt: int = 0
    failures: int = 0
    node: int | None = None
    owner: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    unique_key: str | None = None
    retry_of: UUID | None = None
    cancel_requested: bool = False
    created_at: datetime
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str | None = None
    disposition: str | None = None

    @property
    def task(self) -> str | None:
        """The name of the task it runs; None when its target is another."""
        return self.target.get("name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(JobSummary):
    payload: Any = None
    timeout: str | None = None
    retry: dict[str, Any] | None = None
    delivery: str = "at_least_once"
    losses: int = 0
    checkpoint: Any = None
    progress: Any = None
    result: Any = None
    attempts: list[Attempt] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A job that was accepted: it is durable."""

    id: UUID
    state: State
    created: bool  # False: a job with the same unique key was there already, and this is that one
    conflict: str | None = None  # what became of a unique key that was taken: skipped, replaced or rescheduled
    queue: str
    priority: int
    fire_time: datetime
    due_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    ids: list[UUID]  # in the order of the request
    created: int  # how many are new; the others answer for a unique key


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFailure:
    id: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """What an action on many came to."""

    matched: int
    done: int
    failed: list[BulkFailure] = field(default_factory=list)
    at_least: bool = False  # of a dry run: nobody counted further
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters that died of the same."""

    error: str | None
    target: str
    count: int
    oldest: datetime
    newest: datetime
    sample: UUID  # one of them


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroups:
    items: list[DeadGroup]  # largest first
    complete: bool = True  # False: there are older dead letters that were not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a job or a schedule is in its present state."""

    code: str
    why: str
    since: datetime | None = None
    remedy: str | None = None

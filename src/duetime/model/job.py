"""A job: one unit of work, its states, and the rows that travel between engine and store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from duetime.model.instant import Micros

LOWEST_PRIORITY, DEFAULT_PRIORITY, HIGHEST_PRIORITY = 0, 5, 9
DEFAULT_QUEUE = "default"
DEFAULT_TENANT = "default"
MAX_ERROR_LINE = 200


class State(StrEnum):
    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"

    @property
    def final(self) -> bool:
        return self in FINAL


FINAL = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED, State.SKIPPED})


class Overlap(StrEnum):
    """What a fire does while an earlier job of its schedule has started and not finished."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"
    CANCEL_PREVIOUS = "cancel_previous"


class Delivery(StrEnum):
    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


class JobDraft(NamedTuple):
    """A job to be stored as pending. A tuple in column order, because bulk submission copies millions of
    them."""

    id: UUID
    tenant: str
    schedule_id: UUID | None
    schedule: str | None
    fire_time: Micros
    due_at: Micros
    queue: str
    priority: int
    overlap: str | None  # None = allow; otherwise one job of the schedule runs at a time
    target: str  # a task's name, or a kind such as "@http": what a node must know to run the job
    target_spec: bytes | None
    payload: bytes
    policies: bytes | None  # the differences from the task's defaults, as JSON
    owner: str | None
    labels: bytes | None
    unique_key: str | None
    retry_of: UUID | None
    limit_key: str | None = None  # jobs with the same key share a limit and take turns with other keys


class Claimed(NamedTuple):
    """A job as its worker sees it, in the column order of a claim."""

    id: UUID
    attempt: int
    target: str
    payload: bytes
    due_at: Micros
    queue: str
    priority: int
    fire_time: Micros
    failures: int
    losses: int
    cancel_requested: bool
    schedule_id: UUID | None
    schedule: str | None
    overlap: str | None
    policies: bytes | None
    target_spec: bytes | None
    checkpoint: bytes | None
    tenant: str
    begun: bool = False  # of a lost job: its worker had recorded that it starts
    limit_key: str | None = None
    permit: UUID | None = None  # jobs under the same permit run one after the other


@dataclass(frozen=True, slots=True)
class Job:
    """Everything the store knows about one job, live or finished."""

    id: UUID
    tenant: str
    schedule_id: UUID | None
    schedule: str | None
    fire_time: Micros
    due_at: Micros
    queue: str
    priority: int
    overlap: str | None
    target: str
    target_spec: bytes | None
    payload: bytes
    policies: bytes | None
    owner: str | None
    labels: bytes | None
    unique_key: str | None
    retry_of: UUID | None
    limit_key: str | None
    state: State
    attempt: int
    failures: int
    losses: int
    node: int | None
    cancel_requested: bool
    checkpoint: bytes | None
    progress: bytes | None
    created_at: Micros
    claimed_at: Micros | None
    started_at: Micros | None
    finished_at: Micros | None
    result: bytes | None
    error: str | None  # of the last attempt that did not succeed, or why the job was skipped or cancelled
    disposition: str | None  # of a dead letter: "retried" or "discarded"


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list; None means any."""

    tenant: str
    states: frozenset[State] | None = None
    queue: str | None = None
    owner: str | None = None
    schedule: str | None = None
    target: str | None = None
    node: int | None = None
    due_after: Micros | None = None
    due_before: Micros | None = None
    undisposed: bool = False  # only dead letters that were neither retried nor discarded
    fire_after: Micros | None = None
    fire_before: Micros | None = None
    label: tuple[str, str] | None = None  # a key and its value
    error: str | None = None  # the `error_line` of its error


def error_line(error: str) -> str:
    """The line of an error that says what went wrong, by which errors are told apart: its last, for what
    comes before is where."""
    return error.rstrip("\n").rpartition("\n")[2][:MAX_ERROR_LINE]


class CancelReply(StrEnum):
    CANCELLED = "cancelled"  # it had not started, and will not start
    REQUESTED = "requested"  # it runs, and its worker was asked to stop it
    FINAL = "final"  # it had already finished
    MISSING = "missing"

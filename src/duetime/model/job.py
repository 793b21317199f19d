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
LONGEST_LINE = 200


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
    """A job to be stored as pending. A tuple in column order, because bulk submission copies millions of them."""

    id: UUID
    tenant: str
    schedule_id: UUID | None
    schedule: str | None
    fire_time: Micros
    due_at: Micros
    queue: str
    priority: int
    overlap: str | None  # None = allow; anything else makes the store start one job of the schedule at a time
    target: str  # a task's name, or "@http" and its like: what a node must know in order to run it
    target_spec: bytes | None
    payload: bytes
    policies: bytes | None  # what differs from the task's own defaults, as JSON
    owner: str | None
    labels: bytes | None
    unique_key: str | None
    retry_of: UUID | None
    gate: str | None = None  # jobs with the same one share a limit and take turns with those of other gates


class Claimed(NamedTuple):
    """A job as its worker sees it, in the order in which the claim returns the columns."""

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
    begun: bool = False  # among orphans: its worker had announced that it starts
    gate: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """Everything the store knows of one job, live or past."""

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
    gate: str | None
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
    error: str | None  # of the last attempt that ended badly, or why it was skipped or cancelled
    disposition: str | None  # what became of a dead letter: "retried" or "discarded"


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
    undisposed: bool = False  # only dead letters nobody has retried or discarded
    fire_after: Micros | None = None
    fire_before: Micros | None = None
    label: tuple[str, str] | None = None  # a key and its value
    error: str | None = None  # what `error_line` says of its error


def error_line(error: str) -> str:
    """The line of an error that says what went wrong, by which errors are told apart: its last, for what comes before is where."""
    return error.rstrip("\n").rpartition("\n")[2][:LONGEST_LINE]


class CancelReply(StrEnum):
    CANCELLED = "cancelled"  # it had not started and never will
    REQUESTED = "requested"  # it runs; its worker has been asked to stop it
    FINAL = "final"  # too late
    MISSING = "missing"

"""A job: one unit of work, its states, and the rows that travel between engine and store."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Literal, NamedTuple
from uuid import UUID

from duetime.model.instant import Micros

# One attempt of a job: how it can end, and the record of one that did not succeed.


MAX_ERROR = 8_000
MAX_LAST_LINE = 1_000
CUT = "\n... truncated ...\n"


class Ending(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the task raised
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"  # by a user, an operator or the task itself
    RELEASED = "released"  # the worker shut down first; not a failure of the task
    HANDED_OVER = "handed_over"  # continues outside, and its end will be reported; leaves no record
    SNOOZED = "snoozed"  # the task asked to run later; not a failure
    LOST = "lost"  # the worker died or was fenced; not a failure of the task


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended, before it is decided what follows."""

    ending: Ending
    result: bytes | None = None
    error: str | None = None
    problem: BaseException | None = None  # what the task raised, for the retry policy
    delay: Micros | None = None  # how long the task wants to wait, or the time for the report
    wish: Micros | None = None  # the delay that the target asked for; granted as far as the policy allows
    hopeless: bool = False  # no attempt can succeed: the job cannot be run as it was submitted
    not_here: bool = False  # this node may not run it, and has not begun to; another may


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that did not succeed. The last attempt of a job is stored in the job itself."""

    job_id: UUID
    attempt: int
    node: int | None
    ending: Ending
    started_at: Micros | None
    finished_at: Micros
    error: str | None
    result: bytes | None = None  # of an HTTP target: its response


def error_text(error: object) -> str:
    """An error text that every store can hold: valid characters, no NUL; a long text is cut in the middle.
    Settlements are written in batches, and one that the store rejects would block all the others."""
    try:
        text = str(error)
    except Exception:
        text = f"{type(error).__name__} (its text cannot be read)"
    text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    half = (MAX_ERROR - len(CUT)) // 2
    return text if len(text) <= MAX_ERROR else f"{text[:half]}{CUT}{text[-half:]}"


def trace(problem: BaseException, frames: TracebackType | None) -> str:
    """The traceback, ending with the line that says what went wrong. Errors are listed and grouped by their
    last line, and Python ends with another line if the message has several lines, if there are notes, and for
    exception groups."""
    text = "".join(traceback.format_exception(type(problem), problem, frames)).rstrip()
    what = _what(problem)[:MAX_LAST_LINE]  # error_text, which cuts in the middle, keeps it whole
    return text if text.rpartition("\n")[2] == what else f"{text}\n{what}"


def _what(problem: BaseException) -> str:
    lines = "".join(traceback.format_exception_only(problem)).splitlines()
    # A SyntaxError begins with its location, indented.
    return next((line.rstrip() for line in lines if not line.startswith(" ")), type(problem).__name__)


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
RETRYABLE = frozenset({State.DEAD, State.SKIPPED})  # an operator can run them again, as new jobs


class Overlap(StrEnum):
    """What a fire does while an earlier job of its schedule has started and not finished."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"
    CANCEL_PREVIOUS = "cancel_previous"


def overlap_if_asked_for(overlap: str | None) -> str | None:
    """The overlap of a job that a person asks for, to fill in or repeat a fire: while another job of its
    schedule runs, it waits. It is not skipped a second time, and cancels no other job."""
    return None if overlap is None else Overlap.QUEUE


class Delivery(StrEnum):
    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


# As callers may write them.
OverlapName = Overlap | Literal["allow", "skip", "queue", "cancel_previous"]
DeliveryName = Delivery | Literal["at_least_once", "at_most_once"]


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
    started_at: Micros | None  # exact once the attempt has ended
    finished_at: Micros | None
    result: bytes | None
    error: str | None  # of the last attempt that did not succeed, or why the job was skipped or is cancelled
    disposition: str | None  # of a dead letter: "retried" or "discarded"; of a skipped job: "retried"

    def __post_init__(self) -> None:
        """A start is not worth a write. A node starts a job when it has claimed it, or at its instant if that
        is later; the due_at of an external job is its deadline."""
        if self.state is State.RUNNING and self.started_at is None and self.claimed_at is not None:
            due_at = self.claimed_at if self.node is None else self.due_at
            object.__setattr__(self, "started_at", max(self.claimed_at, due_at))


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
    error: str | None = None  # a part of its error; case does not matter
    error_group: str | None = None  # as `model.search.error_group` names it
    payload: tuple[str, str] | None = None  # the path of a field and its value
    scheduled: bool = False  # only jobs that a schedule fired

    @property
    def is_search(self) -> bool:
        """It has conditions that no index knows: to find few jobs, the store reads many."""
        return (self.label, self.error, self.error_group, self.payload) != (None, None, None, None)


def error_line(error: str) -> str:
    """The line of an error that says what went wrong, its last, for what comes before is
    where."""
    return error.rstrip("\n").rpartition("\n")[2][:MAX_ERROR_LINE]


class CancelReply(StrEnum):
    CANCELLED = "cancelled"  # it had not started, and will not start
    REQUESTED = "requested"  # it runs, and its worker was asked to stop it
    FINAL = "final"  # it had already finished
    MISSING = "missing"

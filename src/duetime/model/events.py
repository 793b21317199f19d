"""What happened, for observers. Past tense; one event per batch where batches are the unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import Claimed, JobDraft
from duetime.model.lease import NodeId
from duetime.model.limit import Queue
from duetime.model.schedule import Change, Firing, Schedule
from duetime.model.settle import Settlement


@dataclass(frozen=True, slots=True)
class NodeJoined:
    node: NodeId
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeLeft:
    node: NodeId


@dataclass(frozen=True, slots=True)
class NodeFenced:
    """This node lost its lease: whatever it runs now may run elsewhere, too."""

    node: NodeId
    reason: str


@dataclass(frozen=True, slots=True)
class NodesBuried:
    nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class JobsRecovered:
    """Jobs of dead nodes were given back or ended."""

    count: int
    settlements: Sequence[Settlement] = ()
    jobs: Sequence[Claimed] = ()  # one for each settlement


@dataclass(frozen=True, slots=True)
class JobsSubmitted:
    """A draft whose stored id is not its own was answered for by a job that was there already."""

    drafts: Sequence[JobDraft]
    stored: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class JobsClaimed:
    """They start now, or at their instant within a moment. Maybe none."""

    jobs: Sequence[Claimed]
    lapse: Micros  # how long the store took


@dataclass(frozen=True, slots=True)
class JobChanged:
    """Somebody asked for it: cancelled, stopping, moved, retried, discarded."""

    tenant: str
    job_id: UUID
    action: str


@dataclass(frozen=True, slots=True)
class AttemptsSettled:
    """Written; those that were refused are left out."""

    settlements: Sequence[Settlement]
    jobs: Sequence[Claimed] = ()  # one for each settlement
    lapse: Micros = 0  # how long the store took


@dataclass(frozen=True, slots=True)
class SettlementsRefused:
    """Somebody else owns these jobs now; what this node did with them does not count."""

    job_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class FiresPlanned:
    jobs: int
    skipped: int
    planned: Sequence[tuple[Schedule, Firing]] = ()


@dataclass(frozen=True, slots=True)
class ScheduleChanged:
    schedule: Schedule
    change: Change


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """Paused, resumed or limited anew."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A loop could not do its turn; it will try again."""

    part: str
    problem: Exception
    wait: Micros
    expected: bool  # an outage of the store, not a fault of ours


@dataclass(frozen=True, slots=True)
class LoopBlocked:
    """Something keeps the event loop of this node from running anything else."""

    silent: Micros
    target: str | None  # of the job that is at it, if it is one
    job_id: UUID | None
    stack: str


Event = (
    NodeJoined
    | NodeLeft
    | NodeFenced
    | NodesBuried
    | JobsRecovered
    | JobsSubmitted
    | JobsClaimed
    | JobChanged
    | AttemptsSettled
    | SettlementsRefused
    | FiresPlanned
    | ScheduleChanged
    | QueueChanged
    | TurnFailed
    | LoopBlocked
)

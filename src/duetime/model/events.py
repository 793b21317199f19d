"""Events for observers, named in the past tense. Work that is done in batches makes one event per batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
class NodeWaits:
    """The node stops, and its running jobs have not ended yet. It waits for them until `grace` is over."""

    node: NodeId
    running: int
    grace: Micros


@dataclass(frozen=True, slots=True)
class NodeLeft:
    node: NodeId


@dataclass(frozen=True, slots=True)
class NodeFenced:
    """This node lost its lease: its jobs may also run on another node now."""

    node: NodeId
    reason: str


@dataclass(frozen=True, slots=True)
class NodesExpired:
    nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class JobsRecovered:
    """Jobs of dead nodes were released or ended."""

    count: int
    settlements: Sequence[Settlement] = ()
    jobs: Sequence[Claimed] = ()  # one for each settlement


@dataclass(frozen=True, slots=True)
class JobsSubmitted:
    """If the stored id of a draft is not its own, an existing job took its place."""

    drafts: Sequence[JobDraft]
    stored: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class JobsClaimed:
    """The jobs start now or very soon. There may be none."""

    jobs: Sequence[Claimed]
    lapse: Micros  # the duration of the store call


@dataclass(frozen=True, slots=True)
class JobChanged:
    """A user or program changed the job: cancelled, stopping, moved, retried, discarded."""

    tenant: str
    job_id: UUID
    action: str


@dataclass(frozen=True, slots=True)
class AttemptsSettled:
    """These results were written. Refused results are not included."""

    settlements: Sequence[Settlement]
    jobs: Sequence[Claimed] = ()  # one for each settlement
    lapse: Micros = 0  # the duration of the store call


@dataclass(frozen=True, slots=True)
class SettlementsRefused:
    """Other attempts own these jobs now; the results of this node do not count."""

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
    """The queue was paused or resumed, or its limits changed."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """One turn of a loop failed; the loop will try again."""

    part: str
    problem: Exception
    wait: Micros
    expected: bool  # an outage of the store, not a bug


@dataclass(frozen=True, slots=True)
class TurnRecovered:
    """A turn of a loop succeeded after turns that failed."""

    part: str


@dataclass(frozen=True, slots=True)
class BrokerLost:
    """The broker does not answer. Workers claim from the store meanwhile."""

    part: str
    problem: Exception


@dataclass(frozen=True, slots=True)
class BrokerBack:
    """It answers again."""

    part: str


@dataclass(frozen=True, slots=True)
class ReadStoreChanged:
    """Lists and statistics are no longer read from the read replica, for the reason given; or, with None,
    again."""

    remark: str | None


@dataclass(frozen=True, slots=True)
class LeasesLost:
    """The service that holds the leases does not answer. This node stops using its leases before they
    end."""

    problem: Exception


@dataclass(frozen=True, slots=True)
class LeasesBack:
    """It answers again."""


@dataclass(frozen=True, slots=True)
class TicketsPushed:
    """A dispatcher gave tickets to the broker."""

    tickets: int
    repeated: int  # of these, given before: the first message may be lost


@dataclass(frozen=True, slots=True)
class TicketsReceived:
    """A worker got tickets from the broker."""

    tickets: int
    stale: int  # of these, named no job that may start now


@dataclass(frozen=True, slots=True)
class MessagesDropped:
    """A worker removed messages from the broker that it cannot read."""

    count: int


@dataclass(frozen=True, slots=True)
class BrokerDepth:
    """Messages that wait in the broker."""

    messages: Mapping[tuple[str, int], int]  # by queue and priority


@dataclass(frozen=True, slots=True)
class LoopBlocked:
    """A call blocks the event loop of this node."""

    silent: Micros
    target: str | None  # of the job that blocks it, if it is a job
    job_id: UUID | None
    stack: str


Event = (
    NodeJoined
    | NodeWaits
    | NodeLeft
    | NodeFenced
    | NodesExpired
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
    | TurnRecovered
    | BrokerLost
    | BrokerBack
    | ReadStoreChanged
    | LeasesLost
    | LeasesBack
    | TicketsPushed
    | TicketsReceived
    | MessagesDropped
    | BrokerDepth
    | LoopBlocked
)

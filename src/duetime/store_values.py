"""What the verbs of a store take and return, other than what `model` has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from duetime.model.instant import SECOND, Micros
from duetime.model.job import DEFAULT_TENANT, Claimed
from duetime.model.lease import NodeId
from duetime.model.schedule import ScheduleDraft
from duetime.queue import Ticket

EVENTS_KEPT = 100_000
EVENTS_KEPT_FOR = 600 * SECOND
Unsubscribe = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one store can do and another cannot. Code asks for these, never for a store's name."""

    durable: bool  # accepted work survives the process
    shared: bool  # several processes may use it at the same time
    hints: bool  # `subscribe` also delivers changes made by other processes
    owner_gone: bool  # `expire_nodes` notices a dead process before its lease ends
    transactions: bool = False  # `within` and `begin_transaction` work
    embedded: bool = False  # opening it creates it, and upgrades an older one
    replicas: bool = False  # lists and statistics may come from a read replica


class Lane(NamedTuple):
    """The jobs of one queue, priority and tenant, read from `low` on: earlier rows were claimed already or
    are left to the sweep."""

    queue: str
    priority: int
    low: Micros
    tenant: str = DEFAULT_TENANT


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    node: NodeId
    lanes: tuple[Lane, ...]  # in order of preference, most urgent first
    targets: tuple[str, ...]  # what this node can run; other jobs wait for a node that can
    room: int
    prefetch: Micros  # claim jobs that fall due within this time, too
    permits: int | None = None  # at most so many jobs with a limit key; None: as many as there is room
    keyed_first: bool = False  # jobs with a limit key go before those without; claims alternate
    # A look at everything, on a connection of its own; also finds waiting jobs whose permit is free
    sweep: bool = False
    urgent: bool = False  # a sweep for the few jobs of these lanes, without the search for free permits
    # Only these jobs, of any lane, while they are pending with that number of attempts; `lanes` is empty
    tickets: tuple[Ticket, ...] = ()
    segments: tuple[int, ...] = ()  # for `due_jobs`: list the jobs of these segments of ids


class DueJob(NamedTuple):
    """A pending job that a claim may start, as far as the store knows without deciding about permits."""

    id: UUID
    attempt: int
    queue: str
    priority: int
    tenant: str
    due_at: Micros
    needs_permit: bool

    @property
    def ticket(self) -> Ticket:
        return Ticket(self.id, self.attempt)


class Due(NamedTuple):
    jobs: list[DueJob]  # lanes in the order of the request, each by due_at
    next_at: Micros | None  # when the next job falls due


class Claims(NamedTuple):
    jobs: list[Claimed]  # lanes in the order of the request, each by due_at
    more: bool = False  # some jobs were set aside or made claimable: another claim may find more now


@dataclass(frozen=True, slots=True)
class Successors:
    """What the settling node takes over: jobs that get the permits of the jobs it settles."""

    node: NodeId
    room: int
    queues: tuple[str, ...]
    targets: tuple[str, ...]
    wanted: Mapping[UUID, int] = field(
        default_factory=dict
    )  # by settled job: how many under its permit, 1 if not named


class Settled(NamedTuple):
    refused: list[UUID]
    successors: list[Claimed]


class OfNode(NamedTuple):
    """Running jobs of this node: for a worker that lost the reply to a claim."""

    node: NodeId


class OfDeadNodes(NamedTuple):
    """Running jobs whose node is dead: to be settled as lost."""


class PastDeadline(NamedTuple):
    """External jobs whose report is overdue, oldest deadline first: to be settled as timed out."""


class AttemptUpdate(NamedTuple):
    """What a running attempt reports. None leaves a field as it is. The deadline is that of an external
    job."""

    id: UUID
    attempt: int
    checkpoint: bytes | None = None
    progress: bytes | None = None
    started: bool = False  # a job that was lost before starts now: a second crash can be attributed to it
    deadline: Micros | None = None


class OnceReply(StrEnum):
    TAKEN = "taken"  # by this call: go on
    KNOWN = "known"  # an earlier attempt took it, or an earlier call of this one
    REFUSED = "refused"  # the job no longer runs under this attempt number


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """A schedule as a change leaves it."""

    draft: ScheduleDraft
    next_fire_time: Micros | None
    paused: bool = False
    pause_note: str | None = None


class EventPage(NamedTuple):
    events: list[tuple[int, bytes]]
    last_id: int  # of the newest event ever written, 0 if there is none


class DueSchedules(NamedTuple):
    """Schedules of these segments, of all tenants, that are not paused and whose cursor is not after `until`;
    oldest cursor first."""

    segments: Sequence[int]
    until: Micros

"""The store contract. Each verb is one transaction; a store compares and sets, and decides nothing else.

Every write may be repeated after a lost reply: ids come from the caller, cursors and attempt numbers are compared before they move.
Verbs raise `StoreUnavailable` when the store cannot be reached now, having changed either everything or nothing.
All instants are microseconds since the epoch; "now" inside a verb is always the store's own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from duetime.model.attempt import Attempt
from duetime.model.hint import Hint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import CancelReply, Claimed, Job, JobDraft, JobFilter
from duetime.model.lease import Beat, Lease, Node, NodeDraft, NodeId
from duetime.model.limit import Bound, Queue
from duetime.model.schedule import Firing, Schedule, ScheduleDraft, ScheduleFilter, ScheduleVersion
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, Rule


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one store can do and another cannot. Code asks these, never for a store's name."""

    durable: bool  # accepted work survives the process
    shared: bool  # several processes may use it at once
    hints: bool  # `subscribe` also hears of changes made by other processes
    owner_gone: bool  # `bury` knows of a dead process before its lease ends
    transactions: bool = False  # a task's own writes and its job's completion can be committed together
    embedded: bool = False  # opening it creates it, and brings an older one to this version


class Lane(NamedTuple):
    """One (queue, priority) to claim from, read from `low` on: rows before it were claimed already or are left to the sweep."""

    queue: str
    priority: int
    low: Micros


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    node: NodeId
    lanes: tuple[Lane, ...]  # in order of preference, most urgent first
    targets: tuple[str, ...]  # what this node can run; everything else waits for a node that can
    room: int
    prefetch: Micros  # claim what falls due within this time, too
    exclusive: bool = True  # also look at jobs whose schedule runs one at a time; without is quicker
    sweep: bool = False  # a look at everything, on a connection of its own
    urgent: bool = False  # a sweep for the few jobs of these lanes: what else it sees to on the way can wait
    bounds: tuple[Bound, ...] = ()  # by target: how many jobs of one gate may run at once and start in a period
    fresh: int | None = None  # about how many to take at most of gates the node has no job of; a wish: not every store goes by it


Unsubscribe = Callable[[], None]

EVENTS_KEPT = 100_000
EVENTS_KEPT_FOR = 600 * SECOND


@dataclass(frozen=True, slots=True)
class Migration:
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class QueueCount:
    queue: str
    pending: int
    due: int  # of the pending ones
    running: int


class Note(NamedTuple):
    """What a running attempt wants kept: its checkpoint, its progress, or both; None leaves what is there."""

    id: UUID
    attempt: int
    checkpoint: bytes | None
    progress: bytes | None


class Record(NamedTuple):
    """A small document of the edges: an API key, a remembered request, a secret. `kind` and `key` name it within its tenant."""

    kind: str
    tenant: str
    key: str
    value: bytes
    version: int
    expires_at: Micros | None


class MarkReply(StrEnum):
    TAKEN = "taken"  # by this call: go on
    KNOWN = "known"  # an earlier attempt took it, or an earlier call of this one
    REFUSED = "refused"  # the job does not run under this attempt number any more


class Transaction(Protocol):
    """A transaction in the store's own database which a task writes in, begun and not yet committed."""

    connection: Any  # the driver's own for PostgreSQL; for SQLite one with the same verbs

    async def finish(self, settlement: Settlement) -> bool:
        """Write the settlement inside the transaction and commit both. False: the job does not run under this attempt number any
        more, and everything was rolled back. A StoreError leaves open whether it was committed."""
        ...

    async def abandon(self) -> None:
        """Roll back. May be called at any time, also after `finish`."""
        ...


class Guest(Protocol):
    """A caller's own connection, in whose open transaction jobs are stored: they are there when the caller commits, and never else."""

    blocking: bool  # a connection without async: `add_jobs_now` is the way, called on the thread that owns the connection

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]: ...

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]: ...


class Store(Protocol):
    capabilities: Capabilities

    # -- life ---------------------------------------------------------------------------------------------------------
    async def open(self) -> None:
        """Connect; raises SchemaMissing or SchemaTooNew instead of working on rows it does not know."""

    async def close(self) -> None:
        """Give everything back. May be called twice."""

    async def migrate(self) -> Migration:
        """Bring the schema to this version; safe to run from many processes at once. Needs no open()."""

    def twin(self) -> Store:
        """Another handle on the same data with connections of its own, for use from another thread and event loop."""
        ...

    async def time(self) -> Micros:
        """The store's clock, read as late as possible before the reply."""
        ...

    # -- jobs: what callers ask for -----------------------------------------------------------------------------------
    async def add_jobs(self, drafts: Sequence[JobDraft], again: bool = False) -> list[UUID]:
        """Store all or none, durably; emits hints. The answer has one id per draft: its own, or that of the live job
        which already holds its (tenant, unique_key). A draft whose id belongs to a live job is left alone. Whoever repeats a
        call whose reply was lost says `again`: then a draft whose job has finished meanwhile is left alone too."""
        ...

    async def add_unique(self, draft: JobDraft, rule: Rule, again: bool = False) -> Admission:
        """Store a draft that has a unique key, unless a job with the same (tenant, unique_key) counts by the rule: one in
        `rule.states` that was created within `rule.within`. Then `skip` answers with that job; `replace` ends the pending one as
        cancelled ("replaced by ...") and stores the draft; `reschedule` moves the pending one to the draft's due_at. What is not
        pending is never touched: skipped. A live job that does not count gives up its key to the draft. All in one transaction;
        of two callers at once, one is second."""
        ...

    def guest(self, connection: Any) -> Guest:
        """Make use of a caller's own connection to the same database; InvalidInput("connection", ...) for one we cannot use."""
        ...

    async def get_job(self, tenant: str, job_id: UUID) -> Job | None: ...

    async def list_jobs(self, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None = None) -> list[Job]:
        """Newest fire_time first, live and past together; `before` is (fire_time, id) of the last row already seen. A label is looked
        for in one row after the other: where few match, narrow the filter by other fields, too."""
        ...

    async def count_matching(self, wanted: JobFilter, most: int) -> int:
        """How many jobs the filter selects, live and past together; nobody counts further than `most`."""
        ...

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        """Attempts that ended badly, oldest first."""
        ...

    async def count_jobs(self) -> list[QueueCount]:
        """Live jobs by queue, sorted by queue."""
        ...

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        """Pending: ends it as cancelled. Running: marks it and emits a CancelHint. Handed over: there is no worker to ask, so it ends as
        cancelled at once, its attempt too."""
        ...

    async def change_job(self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None) -> bool:
        """Move a pending job; False when it is not pending any more."""
        ...

    async def revive_job(self, tenant: str, job_id: UUID, draft: JobDraft) -> bool:
        """Store `draft` and mark the dead letter `job_id` as retried, together; False when it is no undisposed dead letter.
        Raises Conflict, and changes nothing, when a live job holds the draft's unique key."""
        ...

    async def discard_job(self, tenant: str, job_id: UUID) -> bool:
        """Mark a dead letter as discarded; False when it is no undisposed dead letter."""
        ...

    # -- jobs: what workers ask for -----------------------------------------------------------------------------------
    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        """Pending jobs that are due (or within the prefetch) become running under the node, attempt + 1, at most `room`,
        lanes in the order given, each from its oldest due row. Nothing for a node that is dead or whose lease has ended.
        The one verb a store must not repeat by itself after a lost reply: the caller asks what it `held` instead.

        Exclusive jobs (overlap is not None) start only while no other job of their schedule has started and not finished
        (a live row with attempt > 0). One that is due and blocked: `skip` ends as skipped ("overlap: ..."),
        `cancel_previous` marks the job in its way as cancel requested and waits, `queue` waits. Oldest fire first.

        Jobs with a gate start only while fewer than the bound's `most` of their gate run, on whichever node, and while the
        bound's rate allows; a target without a bound has none. Of a gate of which nobody else has any, a node gets up to `ahead` more that
        are due, and sees to it that no more than `most` of them start at once; nothing of a limited queue, whose places they would hold. So
        what runs of a gate is no more than `most`, or all on one node. Within a lane jobs without a gate and each gate take turns, one
        job a turn, so that no gate's flood holds up the others; within a gate oldest due first. Nothing of a paused queue is
        claimed, and a queue's own `most` and rate hold for all its jobs."""
        ...

    async def next_due(self, request: ClaimRequest) -> Micros | None:
        """Earliest due_at later than now + prefetch among the lanes (`low` is ignored), exclusive and gated jobs included; and for
        jobs that are due and held up by a rate, the instant at which it allows the next, if that is earlier. Paused queues do not
        count."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> list[UUID]:
        """Write each decision whose job still runs under that attempt number; answers the ids that were refused.
        Final states move to the past; PENDING goes back with due_at, failures, losses, node cleared. An ending other than
        SUCCEEDED leaves a row in attempts, unless the attempt never started (started_at is None) and was RELEASED.
        Repeating a settlement that was written is not a refusal. An empty batch only makes the way ready for the next.

        RUNNING (with any ending but SUCCEEDED) hands the job over to a worker outside: it runs on under its attempt number and counts
        for its gate and queue, but no node has it, due_at is the deadline of a report, and no row is left in attempts. Whoever knows the
        attempt number settles it as usual. Nodes may come and go: it is no orphan. `cancel_previous` marks it and waits."""
        ...

    async def extend(self, job_id: UUID, attempt: int, due_at: Micros) -> bool:
        """Move the deadline of a job that was handed over. False when it is not handed over under this attempt number (any more)."""
        ...

    async def overdue(self, limit: int) -> list[Claimed]:
        """Jobs that were handed over and whose deadline has passed, oldest deadline first; to be settled as timed out."""
        ...

    async def held(self, node: NodeId) -> list[Claimed]:
        """Running jobs of this node: for a worker that lost the reply to a claim and does not know what it got."""
        ...

    async def begin(self, job_id: UUID, attempt: int) -> bool:
        """Announce that a job starts which was lost with a worker before, so that the next loss can be laid at its door.
        False when it does not run under this attempt number any more: do not start it."""
        ...

    async def save(self, notes: Sequence[Note]) -> list[UUID]:
        """Keep checkpoints and progress of running jobs, durably; answers the ids that do not run under that attempt number any
        more. Several notes of one job are applied in order."""
        ...

    async def mark(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
        """Take the mark `key` of this job, once for all its attempts. Repeating a call with the same nonce gives the same answer.
        Marks are forgotten with the job."""
        ...

    async def transact(self) -> Transaction:
        """Begin a transaction for a task's own writes. Only where transactions are a capability."""
        ...

    async def await_job(self, job_id: UUID) -> bool:
        """Have a DoneHint emitted when this job becomes final; False when it is no live job (any more)."""
        ...

    async def queues(self) -> list[Queue]:
        """Every queue a job was ever stored under or that was set, by name."""
        ...

    async def set_queue(self, queue: Queue) -> None:
        """Replace what is said about this queue; emits a hint. From the next claim on, nothing of a paused queue is claimed (what
        runs goes on), and no more than its `most` run at once and its rate starts, over all nodes."""
        ...

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def put_schedule(
        self, draft: ScheduleDraft, next_fire_time: Micros | None, expect_version: int | None, author: str | None = None
    ) -> Schedule | None:
        """Create (expect_version 0), replace version n (expect_version n), or whichever it is (None). None when the
        expectation fails. Replacing keeps id, runs and pause, raises the version, and withdraws not-yet-started jobs with
        fire_time in the future. last_fire_time becomes the latest fire that can no longer be withdrawn. A new schedule under the
        name of a removed one has an id of its own and goes on numbering where that one ended, as long as its versions are known."""
        ...

    async def get_schedule(self, tenant: str, name: str) -> Schedule | None: ...

    async def get_schedule_by_id(self, tenant: str, schedule_id: UUID) -> Schedule | None: ...

    async def list_schedules(self, wanted: ScheduleFilter, limit: int, after_name: str | None = None) -> list[Schedule]:
        """By name."""
        ...

    async def pause_schedule(self, tenant: str, name: str, note: str | None, author: str | None = None) -> Schedule | None:
        """Stop planning and withdraw as put_schedule does; raises the version. None when there is no such schedule."""
        ...

    async def resume_schedule(
        self, tenant: str, name: str, next_fire_time: Micros | None, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        """Plan again from this cursor; raises the version. One that is not paused, or not at the version for which the cursor was found, is
        left as it is."""
        ...

    async def remove_schedule(
        self, tenant: str, name: str, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        """Delete it (any version, or only the one expected) and withdraw as put_schedule does. None when there is no such schedule, or none
        at this version. Running jobs finish; history stays, and so do its versions."""
        ...

    async def list_versions(self, tenant: str, name: str, limit: int, before: int | None = None) -> list[ScheduleVersion]:
        """What was changed on the schedules of this name, highest version first; `before` is the last version already seen. Every verb
        above that raises the version leaves a row in the same transaction, and so does removal, with a number of its own."""
        ...

    async def due_schedules(self, segments: Sequence[int], until: Micros, limit: int) -> list[Schedule]:
        """Not paused, cursor not after `until`, of these segments; oldest cursor first."""
        ...

    async def fire(self, firings: Sequence[Firing]) -> int:
        """For each firing whose schedule still has that version and cursor and is not paused: store its fires (skipped ones
        straight into the past) with the draft's gate, move cursor, last_fire_time and runs. A fire whose id is stored already is
        left alone. Answers how many firings were applied; emits hints for jobs due soon."""
        ...

    # -- nodes and leases ---------------------------------------------------------------------------------------------
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        """Register this run of a process; the id is never given to another."""
        ...

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        """Extend the node's lease, unless it was declared dead."""
        ...

    async def leave(self, node: NodeId) -> None:
        """The orderly end: the node is dead at once and its leases are free."""
        ...

    async def nodes(self, living: bool = False) -> list[Node]:
        """Nodes that are alive, or dead and not yet forgotten; by id. `living`: without the dead, of which there may be thousands."""
        ...

    async def bury(self, me: NodeId) -> list[NodeId]:
        """Declare dead every node whose lease has ended, or whose process is known to be gone; answers those newly dead."""
        ...

    async def orphans(self, limit: int) -> list[Claimed]:
        """Running jobs of dead nodes, to be settled as lost."""
        ...

    async def take_leases(self, node: NodeId, names: Sequence[str]) -> list[str]:
        """Take those of `names` that are free or whose holder is dead; answers all of `names` that the node now holds."""
        ...

    async def drop_leases(self, node: NodeId, names: Sequence[str]) -> None: ...

    async def leases(self) -> list[Lease]: ...

    # -- documents and events of the edges ----------------------------------------------------------------------------
    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None:
        """One that has expired is none, here and below."""
        ...

    async def put_record(
        self, kind: str, tenant: str, key: str, value: bytes, expect: int | None = None, expires_at: Micros | None = None
    ) -> int:
        """The new version; 0, and nothing is changed, when the expectation fails (0: there must be none). Versions of a record only rise,
        also when it expired or was deleted in between. After a lost reply the caller reads what is there: a repetition may fail by the
        success of the first try."""
        ...

    async def delete_record(self, kind: str, tenant: str, key: str) -> bool: ...

    async def list_records(self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None) -> list[Record]:
        """By (tenant, key), after that of the last one already seen; of all tenants when None."""
        ...

    async def add_events(self, events: Sequence[bytes]) -> None:
        """Append to the log of events, in this order; emits an EventHint. What is repeated after a lost reply may be there twice."""
        ...

    async def list_events(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Events with an id greater than `after`, oldest first. Ids only rise; once one is seen, no smaller one appears any more. The log
        keeps EVENTS_KEPT at most, and after a `prune` those of the last EVENTS_KEPT_FOR."""
        ...

    async def last_event(self) -> int:
        """The id of the newest event, 0 when there never was one. It stays when the event itself is old."""
        ...

    # -- upkeep and hints ---------------------------------------------------------------------------------------------
    async def prune(self, before: Micros, targets: Mapping[str, Micros] | None = None) -> int:
        """Forget jobs finished before this instant (`targets`: jobs of these before instants of their own, if those are later), with
        their attempts and marks, dead nodes without jobs, versions of schedules that are gone, records that have expired and events that
        are old; also prepares storage for the days ahead. Answers how many jobs went (an estimate where whole partitions are dropped)."""
        ...

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        """Be told, maybe, soon after something changed. A hint may be lost, doubled or wrong: only ever look sooner."""
        ...

    async def hint(self, hints: Sequence[Hint]) -> None:
        """Tell every listener, in this process and, where hints are a capability, in others."""
        ...

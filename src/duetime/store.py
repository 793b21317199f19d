"""The store contract: small protocols by noun, together `Store`. Each verb is one transaction.

What a store decides: nothing but the outcome of a comparison (is the cursor, version or attempt number still
the expected one?), the order of rows, and the time. What it does not decide: what follows from a failure
(`model/settle.py`), which fires are due (`model/schedule.py`), which jobs may start under limits and overlap
(`model/permits.py`), which earlier job a unique key matches (`model/unique.py`). It executes these decisions.

Every write may be repeated after a lost reply: ids come from the caller; cursors, versions and attempt
numbers are compared before they move. Verbs raise `StoreUnavailable` when the store cannot be reached, having
changed everything or nothing. Instants are microseconds since the epoch; "now" inside a verb is the store's
own clock. Verbs behind a capability raise `Unsupported` where the store lacks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from duetime.model.hint import Hint
from duetime.model.identity import StoreIdentity
from duetime.model.instant import Micros
from duetime.model.job import Attempt, CancelReply, Claimed, Job, JobDraft, JobFilter
from duetime.model.lease import Beat, Node, NodeDraft, NodeId
from duetime.model.limit import ALL_QUEUES, Queue, QueueFilter
from duetime.model.migration import Migration
from duetime.model.schedule import Firing, Schedule, ScheduleFilter, ScheduleVersion
from duetime.model.settle import Settlement
from duetime.model.stored import Record, RowKey, RowKind, StoredRow
from duetime.model.unique import Admission, Rule
from duetime.store_transactions import CallerStore, CallerTransaction, RunOnOwner, TaskTransaction
from duetime.store_values import (
    EVENTS_KEPT,
    EVENTS_KEPT_FOR,
    AttemptUpdate,
    Capabilities,
    ClaimRequest,
    Claims,
    Due,
    DueJob,
    DueSchedules,
    EventPage,
    Lane,
    OfDeadNodes,
    OfNode,
    OnceReply,
    PastDeadline,
    ScheduleState,
    Settled,
    Successors,
    Unsubscribe,
)

# Stores and callers know all of it from here.
__all__ = [
    "EVENTS_KEPT",
    "EVENTS_KEPT_FOR",
    "AttemptUpdate",
    "CallerStore",
    "CallerTransaction",
    "Capabilities",
    "ClaimRequest",
    "Claims",
    "Due",
    "DueJob",
    "DueSchedules",
    "EventPage",
    "EventStore",
    "JobStore",
    "Lane",
    "Migration",
    "NodeStore",
    "OfDeadNodes",
    "OfNode",
    "OnceReply",
    "PastDeadline",
    "Record",
    "RecordStore",
    "RowStore",
    "RunOnOwner",
    "ScheduleState",
    "ScheduleStore",
    "Settled",
    "Store",
    "Successors",
    "TaskTransaction",
    "TransactionStore",
    "Unsubscribe",
    "WorkStore",
]


class JobStore(Protocol):
    """What callers ask about jobs and queues."""

    async def add_jobs(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        """Store all or none, durably; emits hints. Returns one id per draft: its own, or that of the live job
        which already holds its (tenant, unique_key). A draft whose id belongs to a live job, of any tenant,
        is taken for a repetition of it and left alone, whatever else differs. `is_retry` repeats a call whose
        reply was lost: then a draft whose job has finished is left alone, too. Due jobs beyond the first few
        of a limit key are stored as waiting (`permits.waiting_when_stored`)."""
        ...

    async def add_unique(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        """Store a draft that has a unique key, unless a job with the same (tenant, unique_key) matches the
        rule: it is in `rule.states` and was created within `rule.within`. Then `skip` returns that job;
        `replace` ends the pending one as cancelled ("replaced by ...") and stores the draft; `reschedule`
        moves the pending one to the draft's due_at. A job that is not pending is never touched: skipped. A
        live job that does not match gives up its key to the draft. One transaction; concurrent calls are
        serialised."""
        ...

    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        """`announce`: if the job is live, emit a DoneHint when it becomes final."""
        ...

    async def list_jobs(self, wanted: JobFilter, limit: int, before: UUID | None = None) -> list[Job]:
        """Newest fire_time first, live and past together; `before` is the id of the last row already seen:
        ids are in the order of fire times. A label is compared row by row: where few match, narrow the filter
        by other fields, too."""
        ...

    async def count_jobs(self, wanted: JobFilter, limit: int) -> int:
        """How many jobs the filter selects, live and past together; counting stops at `limit`."""
        ...

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        """Attempts that did not succeed, oldest first."""
        ...

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        """Pending: ends it as cancelled. Running: marks it, keeps the reason as its error and emits a
        CancelHint. External: it has no worker to ask, so it ends as cancelled immediately, its attempt
        too."""
        ...

    async def reschedule_job(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> bool:
        """Change the due time or priority of a pending job; False when it is no longer pending."""
        ...

    async def resolve_dead_job(self, tenant: str, job_id: UUID, retry: JobDraft | None) -> bool:
        """Mark a dead letter or a skipped job as retried and store `retry`, together; with None, mark a dead
        letter as discarded. False when the job is not one, or is marked already. Raises Conflict, and changes
        nothing, when a live job holds the unique key of `retry`."""
        ...

    async def queues(self, counted: bool = False, wanted: QueueFilter = ALL_QUEUES) -> list[Queue]:
        """The queues that a job was stored under or that were set, by name; with the counts of their live
        jobs if asked for, those of the wanted tenant only."""
        ...

    async def set_queue(self, queue: Queue) -> None:
        """Replace the settings of this queue; emits a hint. From the next claim on, nothing of a paused queue
        is claimed (running jobs continue), and its `max_running` and rate hold over all nodes."""
        ...


class WorkStore(Protocol):
    """What workers ask."""

    async def claim(self, request: ClaimRequest) -> Claims:
        """Pending jobs that are due (or within the prefetch) become running under the node, attempt + 1, at
        most `room`, lanes in the order given, each from its oldest due row. Which of the candidates start is
        decided by `permits.decide`. Nothing for a node that is dead or whose lease has ended; nothing of a
        paused queue. Jobs that wait for a permit are not candidates. With `tickets` the candidates are these
        jobs, in this order, instead of those of lanes. The one verb, with `settle` for
        successors, that a store must not repeat by itself after a lost reply: the caller asks for its
        `running_jobs` instead."""
        ...

    async def due_jobs(self, request: ClaimRequest) -> Due:
        """When the next job falls due: the earliest due_at later than now + prefetch among the lanes (`low`
        is ignored), without jobs that wait for a permit and without paused queues; of jobs that need a
        permit, later than now: a claim that looks ahead may leave them. If a queue's rate holds up due jobs,
        the instant at which it allows the next start, if that is earlier.

        With `segments`, for a dispatcher: also the jobs that are due (or within the prefetch), of these
        segments, whatever their target; of each lane at most `room` that need a permit and `room` that do
        not. Then `next_at` counts lanes whose due jobs are all listed, and no rates."""
        ...

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        """Write each decision whose job still runs under that attempt number. Final states move to the past;
        PENDING goes back with due_at, failures, losses, node cleared. If a cancellation was requested,
        PENDING and CANCELLED leave its reason as the job's error. An ending other than SUCCEEDED leaves a
        row in attempts, unless the attempt never started (started_at is None) and was RELEASED. Repeating a
        settlement that was written is not a refusal. An empty batch only prepares the connection for the
        next.

        The permit of each job that stops running passes to the best job that waits for it (priority, then
        due_at), and so does the permit of a schedule whose job becomes final. With `successors` it starts
        under that node, within its room, queues and targets: attempt + 1, the same permit. Otherwise, and
        where the next job needs a second permit or is under a rate, it becomes claimable again, and a hint is
        emitted. While more permits are in use than the limit allows (it was lowered), none is passed on.

        RUNNING (with any ending but SUCCEEDED) makes the job external: it runs on under its attempt number
        and keeps its permit, but has no node; due_at is the deadline for a report, and no row is left in
        attempts. A report with the attempt number settles it as usual."""
        ...

    async def running_jobs(
        self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int
    ) -> list[Claimed]: ...

    async def save_progress(self, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        """Keep what running attempts report, durably, in order; returns the ids that no longer run under that
        attempt number."""
        ...

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        """Take the marker `key` of this job, once for all its attempts. Repeating a call with the same nonce
        gives the same reply. Markers are forgotten with the job."""
        ...


class TransactionStore(Protocol):
    """Only where `transactions` is a capability."""

    def within(self, connection: Any) -> CallerTransaction:
        """Use a caller's own connection to the same database; InvalidInput("connection", ...) for one that
        cannot be used."""
        ...

    async def begin_transaction(self) -> TaskTransaction:
        """Begin a transaction for a task's own writes."""
        ...


class ScheduleStore(Protocol):
    async def write_schedule(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None = None,
    ) -> Schedule | None:
        """Create (expect_version 0), replace (version n) or, with state None, remove a schedule. None when it
        is not at that version. Returns it as stored, for a removal as it was.

        Raises the version and records it in the versions, in the same transaction; a removal has a version of
        its own. Withdraws jobs of the schedule that have not started and whose fire_time is in the future;
        last_fire_time becomes the latest fire that can no longer be withdrawn. Replacing keeps id and runs. A
        new schedule under the name of a removed one has its own id and continues the numbering while the
        versions are known."""
        ...

    async def get_schedule(self, tenant: str, name: str | UUID) -> Schedule | None:
        """By name, or by id."""
        ...

    async def list_schedules(
        self, wanted: ScheduleFilter | DueSchedules, limit: int, after_name: str | None = None
    ) -> list[Schedule]:
        """Those of a filter by name, after the last one already seen."""
        ...

    async def list_versions(
        self, tenant: str, name: str, limit: int, before: int | None = None
    ) -> list[ScheduleVersion]:
        """Changes of the schedules of this name, highest version first; `before` is the last version already
        seen."""
        ...

    async def fire(self, firings: Sequence[Firing]) -> int:
        """For each firing whose schedule still has that version and cursor and is not paused: store its fires
        (skipped ones directly into the past) with the draft's limit key, move cursor, last_fire_time and
        runs. A fire whose id is stored already is left alone. Returns how many firings were applied; emits
        hints for jobs due soon."""
        ...


class NodeStore(Protocol):
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        """Register this run of a process; the id is never given to another. Its limits replace those stored
        for the same targets. A `remote` node outlives the process that joins for it, and any process may
        send its heartbeats."""
        ...

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        """Extend the node's lease, unless it was declared dead."""
        ...

    async def leave(self, node: NodeId) -> None:
        """The orderly end: the node is dead immediately, and `has_left`."""
        ...

    async def nodes(self, living: bool = False, counted: bool = False) -> list[Node]:
        """Nodes that are alive, or dead and not yet forgotten; by id. `living`: without the dead, of which
        there may be thousands. `counted`: with the number of jobs that each runs, for a person who looks: in
        a SQL store it costs more, the more dead rows a long transaction keeps."""
        ...

    async def expire_nodes(self, me: NodeId) -> list[NodeId]:
        """Declare dead every node whose lease has ended or whose process is known to be gone; returns those
        newly dead."""
        ...


class RecordStore(Protocol):
    """Small documents. An expired record does not exist, here and below."""

    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None: ...

    async def put_record(
        self,
        kind: str,
        tenant: str,
        key: str,
        value: bytes | None,
        expect: int | None = None,
        expires_at: Micros | None = None,
    ) -> int:
        """The new version. A value of None deletes the record and returns the version it had. 0, and nothing
        changes, when the expectation fails (0: there must be none) or there is nothing to delete. Versions of
        a record only rise, also after it expired or was deleted. After a lost reply the caller reads the
        record: a repetition may fail because the first try succeeded."""
        ...

    async def list_records(
        self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None
    ) -> list[Record]:
        """By (tenant, key), after that of the last one already seen; of all tenants when None."""
        ...


class EventStore(Protocol):
    """The event log."""

    async def add_events(self, events: Sequence[bytes]) -> None:
        """Append, in this order; emits an EventHint. Events repeated after a lost reply may be stored
        twice."""
        ...

    async def list_events(self, after: int, limit: int) -> EventPage:
        """Events with an id greater than `after`, oldest first. Ids only rise; once one is seen, no smaller
        one appears later. The log keeps EVENTS_KEPT at most, and after a `prune` those of the last
        EVENTS_KEPT_FOR. With limit 0 only `last_id` is read."""
        ...


class RowStore(Protocol):
    """Everything in the store, for a copy into another store: rows of one kind in the order of their keys
    (`model.stored.row_key`)."""

    async def read_rows(self, kind: RowKind, after: RowKey | None, limit: int) -> list[StoredRow]:
        """The rows after this key, or the first. Expired records are left out."""
        ...

    async def write_rows(
        self, kind: RowKind, rows: Sequence[StoredRow], after: RowKey | None, until: RowKey | None
    ) -> None:
        """Replace all rows with keys after `after`, up to and including `until`, by these, which keep their
        ids, versions and instants. None: without this bound. Ids of nodes and versions of records that the
        store gives later are higher than these. Sends no hints. Raises Conflict, and changes nothing, when a
        row outside of the range has a name that must be unique, such as the unique key of a live job."""
        ...


class Store(
    JobStore,
    WorkStore,
    TransactionStore,
    ScheduleStore,
    NodeStore,
    RecordStore,
    EventStore,
    RowStore,
    Protocol,
):
    capabilities: Capabilities

    async def open(self) -> None:
        """Connect; raises SchemaMissing or SchemaTooNew instead of working on rows it does not know. A newer
        schema that has only more than this version knows is accepted."""

    async def close(self) -> None:
        """Release everything. May be called twice."""

    async def migrate(self, dry_run: bool = False) -> Migration:
        """Bring the schema to this version, also from many processes at the same time. Needs no open().
        Raises MigrationRefused before a step that living nodes are too old for. A dry run changes nothing."""
        ...

    def clone(self) -> Store:
        """Another handle on the same data with its own connections, for another thread and event loop."""
        ...

    async def time(self) -> Micros:
        """The store's clock, read as late as possible before the reply."""
        ...

    async def identity(self) -> StoreIdentity:
        """Tells these rows from a copy of them elsewhere; failover and restart do not change that. A read
        replica is the same data; `log` tells how far it is behind."""
        ...

    async def prune(self, old: Micros | Sequence[UUID], targets: Mapping[str, Micros] | None = None) -> int:
        """Delete finished jobs, with their attempts and markers: those of these ids, or those that finished
        before this instant (`targets`: their jobs before instants of their own, if those are later). With an
        instant also dead nodes without jobs, versions of removed schedules, expired records and old events,
        and storage is prepared for the days ahead. Returns how many jobs were deleted (an estimate where
        whole partitions are dropped)."""
        ...

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        """Call the listener, possibly, soon after something changed. A hint may be lost, doubled or wrong: it
        only means look sooner."""
        ...

    async def hint(self, hints: Sequence[Hint]) -> None:
        """Send to every listener, in this process and, where hints are a capability, in others."""
        ...

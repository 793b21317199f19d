"""The memory store: each verb takes the one lock, changes everything or nothing, and sends its hints
afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import islice
from threading import RLock
from typing import Any, NoReturn
from uuid import UUID

from duetime.clock import wall_micros
from duetime.errors import ConfigError, Conflict, InvalidInput
from duetime.model.hint import CancelHint, EventHint, Hint, lane_hints
from duetime.model.identity import StoreIdentity
from duetime.model.instant import Micros
from duetime.model.job import RETRYABLE, Attempt, CancelReply, Claimed, Job, JobDraft, JobFilter, State
from duetime.model.lease import Beat, Node, NodeDraft, NodeId
from duetime.model.limit import ALL_QUEUES, Queue, QueueCounts, QueueFilter, with_lanes
from duetime.model.migration import SchemaState
from duetime.model.permits import waiting_when_stored
from duetime.model.schedule import Firing, Schedule, ScheduleFilter, ScheduleVersion
from duetime.model.search import selects
from duetime.model.settle import Settlement
from duetime.model.stored import RowKey, RowKind, StoredRow
from duetime.model.unique import Admission, Rule
from duetime.store import (
    AttemptUpdate,
    Capabilities,
    ClaimRequest,
    Claims,
    Due,
    DueSchedules,
    EventPage,
    Migration,
    OfDeadNodes,
    OfNode,
    OnceReply,
    PastDeadline,
    Record,
    ScheduleState,
    Settled,
    Successors,
    Unsubscribe,
)
from duetime.stores.external import cancellation
from duetime.stores.memory import checkpoints
from duetime.stores.memory.bulk import MemoryRows
from duetime.stores.memory.claim import MemoryClaim, due_jobs, next_due
from duetime.stores.memory.event_log import MemoryEventLog
from duetime.stores.memory.jobs import MemoryJobs
from duetime.stores.memory.nodes import MemoryNodes
from duetime.stores.memory.notifier import ALL_LANES, MemoryNotifier, cursor_hints
from duetime.stores.memory.records import MemoryRecords
from duetime.stores.memory.row import Row, claimed_of, job_of
from duetime.stores.memory.schedules import MemorySchedules
from duetime.stores.memory.settle import MemorySettle
from duetime.stores.memory.unique import admit

SCHEMA_VERSION = 1


class MemoryStore:
    """No verb awaits anything, so each is atomic for its event loop; the lock makes it so for other threads,
    too."""

    capabilities = Capabilities(durable=False, shared=False, hints=True, owner_gone=False, embedded=True)

    def __init__(self, clock: Callable[[], Micros] | None = None) -> None:
        self._clock = clock or wall_micros
        self._lock = RLock()
        self._notifier = MemoryNotifier()
        self._jobs = MemoryJobs()
        self._nodes = MemoryNodes(self._jobs)
        self._schedules = MemorySchedules(self._jobs)
        self._records = MemoryRecords()
        self._events = MemoryEventLog()

    # -- life
    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """The data stays as long as the object."""

    async def migrate(self, dry_run: bool = False) -> Migration:
        return Migration(SchemaState(SCHEMA_VERSION, SCHEMA_VERSION))

    def clone(self) -> MemoryStore:
        return self

    async def time(self) -> Micros:
        return self._clock()

    async def identity(self) -> StoreIdentity:
        """It cannot be copied."""
        return StoreIdentity()

    # -- jobs: what callers ask for
    async def add_jobs(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        with self._lock:
            now = self._clock()
            waiting = waiting_when_stored(drafts, now)
            ids = [self._jobs.add(draft, now, waiting.get(draft.id)) for draft in drafts]
        self._send(lane_hints(drafts))
        return ids

    async def add_unique(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        with self._lock:
            admission = admit(self._jobs, draft, rule, self._clock())
            moved = self._jobs.live.get(admission.id)
        self._send([] if moved is None or admission.conflict == "skipped" else lane_hints([moved.draft]))
        return admission

    def within(self, connection: Any) -> NoReturn:
        raise InvalidInput(
            "connection",
            "the memory store has no database whose transaction a job could join: leave it out in tests",
        )

    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        with self._lock:
            row = self._jobs.find(tenant, job_id)
            if row is not None:
                row.announce = row.announce or announce
            return None if row is None else job_of(row)

    async def list_jobs(self, wanted: JobFilter, limit: int, before: UUID | None = None) -> list[Job]:
        with self._lock:
            found = (row for row in self._select(wanted) if before is None or row.draft.id < before)
            return [job_of(row) for row in nlargest(limit, found, key=lambda row: row.draft.id)]

    async def count_jobs(self, wanted: JobFilter, limit: int) -> int:
        with self._lock:
            return sum(1 for _ in islice(self._select(wanted), limit))

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        with self._lock:
            return list(self._jobs.attempts.get(job_id, ()))

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        with self._lock:
            row = self._jobs.find(tenant, job_id)
            if row is None:
                return CancelReply.MISSING
            if row.state.final:
                return CancelReply.FINAL
            if row.node is None:
                ending = self._cancel(row, reason)
                hints: Sequence[Hint] = lane_hints(waiting.draft for waiting in ending.claimable)
                reply = CancelReply.CANCELLED
            else:
                row.cancel_requested, row.error = True, reason
                reply, hints = CancelReply.REQUESTED, [CancelHint(row.node, job_id)]
        self._send(hints)
        return reply

    async def reschedule_job(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> bool:
        with self._lock:
            row = self._jobs.find(tenant, job_id)
            if row is None or row.state is not State.PENDING:
                return False
            draft = row.draft
            self._jobs.reschedule(
                row,
                draft.due_at if due_at is None else due_at,
                draft.priority if priority is None else priority,
            )
        self._send(lane_hints([row.draft]))
        return True

    async def resolve_dead_job(self, tenant: str, job_id: UUID, retry: JobDraft | None) -> bool:
        with self._lock:
            row = self._jobs.find(tenant, job_id)
            if row is None or row.disposition or row.state not in (RETRYABLE if retry else {State.DEAD}):
                return False
            holder = None if retry is None else self._jobs.holder(retry.tenant, retry.unique_key)
            if retry is not None and holder is not None:
                raise Conflict(
                    f"job {holder} holds the unique key {retry.unique_key!r}: wait for it to finish, or "
                    "cancel it"
                )
            row.disposition = "discarded" if retry is None else "retried"
            if retry is not None:
                self._jobs.add(retry, self._clock())
        self._send([] if retry is None else lane_hints([retry]))
        return True

    # -- jobs: what workers ask for
    async def claim(self, request: ClaimRequest) -> Claims:
        with self._lock:
            now = self._clock()
            if request.room <= 0 or not self._nodes.may_claim(request.node, now):
                return Claims([])
            claim = MemoryClaim(self._jobs, request, now)
            claim.run()
            claimed = [claimed_of(row) for row in claim.taken]
        self._send(claim.hints)
        return Claims(claimed, claim.more)

    async def due_jobs(self, request: ClaimRequest) -> Due:
        with self._lock:
            if request.segments:
                return due_jobs(self._jobs, request, self._clock())
            return Due([], next_due(self._jobs, request, self._clock()))

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        with self._lock:
            now = self._clock()
            if successors is not None and not self._nodes.may_claim(successors.node, now):
                successors = replace(successors, room=0)
            ending = MemorySettle(self._jobs, successors, now)
            for decision in settlements:
                ending.write(decision)
            following = [claimed_of(row) for row in ending.successors]
        self._send(lane_hints(row.draft for row in ending.claimable))
        return Settled(ending.refused, following)

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        with self._lock:
            match selection:
                case OfNode(node):
                    rows = self._jobs.of_node(node)
                case OfDeadNodes():
                    rows = list(islice(self._nodes.of_dead_nodes(), limit))
                case _:
                    rows = self._jobs.past_deadline(self._clock())
            return [claimed_of(row) for row in rows[:limit]]

    async def save_progress(self, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        with self._lock:
            return checkpoints.save(self._jobs, updates)

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        with self._lock:
            return checkpoints.take_once(self._jobs, job_id, attempt, key, nonce)

    async def begin_transaction(self) -> NoReturn:
        raise ConfigError(
            "the memory store has no transactions: a task that needs ctx.connection needs sqlite:/// or postgresql://"
        )

    async def queues(self, counted: bool = False, wanted: QueueFilter = ALL_QUEUES) -> list[Queue]:
        limits = self._jobs.limits
        if wanted.for_workers:
            with self._lock:
                names = [name for name in self._jobs.lanes.with_jobs() if name[0] > wanted.after]
            page = {*sorted({queue for queue, _, _ in names})[: wanted.limit]}
            restricted = await self.queues(wanted=QueueFilter(restricted=True))
            return with_lanes(restricted, (name for name in names if name[0] in page))
        with self._lock:
            queues = [
                queue
                for name, queue in sorted(limits.queues.items())
                if name > wanted.after
                and wanted.name in (None, name)
                and (wanted.tenant is None or (name, wanted.tenant) in limits.used_by)
                and (queue.restricted or not wanted.restricted)
            ][: wanted.limit]
            counts = self._counts(wanted.tenant) if counted else {}
        return (
            [replace(queue, counts=counts.get(queue.name, QueueCounts())) for queue in queues]
            if counted
            else queues
        )

    async def set_queue(self, queue: Queue) -> None:
        with self._lock:
            self._jobs.limits.queues[queue.name] = replace(queue, counts=None)
        self._send([ALL_LANES])

    # -- schedules
    async def write_schedule(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None = None,
    ) -> Schedule | None:
        with self._lock:
            schedule = self._schedules.write(tenant, name, state, expect_version, author, self._clock())
        self._send(() if state is None or state.paused else cursor_hints(schedule))
        return schedule

    async def get_schedule(self, tenant: str, name: str | UUID) -> Schedule | None:
        with self._lock:
            return (
                self._schedules.by_id(tenant, name)
                if isinstance(name, UUID)
                else self._schedules.get(tenant, name)
            )

    async def list_schedules(
        self, wanted: ScheduleFilter | DueSchedules, limit: int, after_name: str | None = None
    ) -> list[Schedule]:
        with self._lock:
            if isinstance(wanted, DueSchedules):
                return self._schedules.due(wanted.segments, wanted.until, limit)
            return self._schedules.by_name(wanted, limit, after_name)

    async def list_versions(
        self, tenant: str, name: str, limit: int, before: int | None = None
    ) -> list[ScheduleVersion]:
        with self._lock:
            return self._schedules.versions(tenant, name, limit, before)

    async def fire(self, firings: Sequence[Firing]) -> int:
        with self._lock:
            now = self._clock()
            applied = [
                drafts for firing in firings if (drafts := self._schedules.fire(firing, now)) is not None
            ]
        self._send(lane_hints(draft for drafts in applied for draft in drafts))
        return len(applied)

    # -- nodes
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        with self._lock:
            return self._nodes.join(draft, ttl, self._clock())

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        with self._lock:
            alive = self._nodes.beat(node, ttl, self._clock())
            cancels = tuple(row.draft.id for row in self._jobs.of_node(node) if row.cancel_requested)
            return Beat(alive, cancels, self._nodes.peers(node))

    async def leave(self, node: NodeId) -> None:
        with self._lock:
            self._nodes.leave(node)

    async def nodes(self, living: bool = False, counted: bool = False) -> list[Node]:
        with self._lock:
            return self._nodes.known(living, counted)

    async def expire_nodes(self, me: NodeId) -> list[NodeId]:
        with self._lock:
            return self._nodes.expire(me, self._clock())

    # -- records and events ----------------------------------------------------------------------------
    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None:
        with self._lock:
            return self._records.get(kind, tenant, key, self._clock())

    async def put_record(
        self,
        kind: str,
        tenant: str,
        key: str,
        value: bytes | None,
        expect: int | None = None,
        expires_at: Micros | None = None,
    ) -> int:
        with self._lock:
            if value is None:
                return self._records.delete(kind, tenant, key, expect, self._clock())
            return self._records.put(Record(kind, tenant, key, value, 0, expires_at), expect, self._clock())

    async def list_records(
        self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None
    ) -> list[Record]:
        with self._lock:
            return self._records.page(kind, tenant, limit, after, self._clock())

    async def add_events(self, events: Sequence[bytes]) -> None:
        with self._lock:
            self._events.add(events, self._clock())
            last = self._events.last
        self._send([EventHint(last)] if events else ())

    async def list_events(self, after: int, limit: int) -> EventPage:
        with self._lock:
            return EventPage(self._events.page(after, limit), self._events.last)

    # -- everything, for a copy
    async def read_rows(self, kind: RowKind, after: RowKey | None, limit: int) -> list[StoredRow]:
        with self._lock:
            return self._rows().read(kind, after, limit)

    async def write_rows(
        self, kind: RowKind, rows: Sequence[StoredRow], after: RowKey | None, until: RowKey | None
    ) -> None:
        with self._lock:
            self._rows().write(kind, rows, after, until)

    # -- upkeep and hints
    async def prune(self, old: Micros | Sequence[UUID], targets: Mapping[str, Micros] | None = None) -> int:
        with self._lock:
            if not isinstance(old, int):
                return self._jobs.forget_finished(old)
            self._nodes.forget(old)
            now = self._clock()
            self._jobs.limits.forget_idle(now)
            self._schedules.forget_versions(old)
            self._records.forget(now)
            self._events.forget(now)
            return self._jobs.prune(old, targets or {})

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        return self._notifier.subscribe(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        self._send(hints)

    # -- inside
    def _select(self, wanted: JobFilter) -> Iterator[Row]:
        return (row for row in self._jobs.every() if selects(wanted, row.draft, row))

    def _rows(self) -> MemoryRows:
        return MemoryRows(self._nodes, self._jobs, self._schedules, self._records, self._clock)

    def _send(self, hints: Sequence[Hint]) -> None:
        """These, and those about jobs that became final."""
        with self._lock:
            ended, self._jobs.hints = self._jobs.hints, []
        self._notifier.send((*hints, *ended))

    def _cancel(self, row: Row, reason: str) -> MemorySettle:
        """A pending or external job."""
        now, draft, ending = self._clock(), row.draft, MemorySettle(self._jobs, None, self._clock())
        if row.state is State.RUNNING:
            ending.write(
                cancellation(draft.id, row.attempt, draft.due_at, row.failures, row.losses, now, reason)
            )
        else:
            self._jobs.finish(row, State.CANCELLED, now, reason)
            ending.free_schedule(row)
        return ending

    def _counts(self, tenant: str | None) -> dict[str, QueueCounts]:
        now = self._clock()
        by_queue: dict[str, list[Row]] = defaultdict(list)
        for row in self._jobs.live.values():
            if tenant is None or row.draft.tenant == tenant:
                by_queue[row.draft.queue].append(row)
        return {queue: _counts_of(rows, now) for queue, rows in by_queue.items()}


def _counts_of(rows: list[Row], now: Micros) -> QueueCounts:
    pending = [row for row in rows if row.state is not State.RUNNING]
    return QueueCounts(
        len(pending), sum(row.draft.due_at <= now for row in pending), len(rows) - len(pending)
    )

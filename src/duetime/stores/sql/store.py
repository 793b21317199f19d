"""The verbs that the SQL stores share: each hands its coroutine to a connection of the store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import Attempt, CancelReply, Claimed, Job, JobDraft, JobFilter
from duetime.model.lease import Beat, Node, NodeDraft, NodeId
from duetime.model.limit import ALL_QUEUES, Queue, QueueFilter
from duetime.model.schedule import Firing, Schedule, ScheduleFilter, ScheduleVersion
from duetime.model.settle import Settlement
from duetime.model.stored import RowKey, RowKind, StoredRow
from duetime.model.unique import Admission, Rule
from duetime.store import (
    AttemptUpdate,
    ClaimRequest,
    Claims,
    Due,
    DueSchedules,
    EventPage,
    OfDeadNodes,
    OfNode,
    OnceReply,
    PastDeadline,
    Record,
    ScheduleState,
    Settled,
    Successors,
)
from duetime.stores.sql import (
    bulk,
    checkpoints,
    claim,
    event_log,
    jobs,
    listing,
    nodes,
    queues,
    records,
    retention,
    schedules,
    settle,
    unique,
)
from duetime.stores.sql.limits import PermitSweep
from duetime.stores.sql.rows import claimed_of

Answer = TypeVar("Answer")
P = ParamSpec("P")
# Where a store has several connections, work of one role does not wait for that of another. LIST and SEARCH
# may read a whole table.
READ, LIST, SEARCH, SUBMIT, CLAIM, SWEEP, SETTLE, HEARTBEAT, PROGRESS, EVENT = (
    "read", "list", "search", "submit", "claim", "sweep", "settle", "heartbeat", "progress", "event",
)  # fmt: skip


class SqlStore:
    def __init__(self, locks: nodes.OwnerLocks) -> None:
        self._owner_locks = locks
        self._sweep = PermitSweep()
        self._retention = retention.TargetRetention()

    async def _write(
        self,
        role: str,
        work: Callable[Concatenate[Any, P], Coroutine[Any, Any, Answer]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Run the work in a transaction."""
        raise NotImplementedError

    async def _read(
        self,
        role: str,
        work: Callable[Concatenate[Any, P], Coroutine[Any, Any, Answer]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Run work that only reads."""
        raise NotImplementedError

    # -- jobs, for callers
    async def add_jobs(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        return await self._write(SUBMIT, jobs.add, drafts) if drafts else []

    async def add_unique(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        return await self._write(SUBMIT, unique.admit, draft, rule)

    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        """Stores announce in their own ways."""
        return await self._read(READ, jobs.get, tenant, job_id)

    async def list_jobs(self, wanted: JobFilter, limit: int, before: UUID | None = None) -> list[Job]:
        return await self._read(_role(wanted), listing.jobs, wanted, limit, before)

    async def count_jobs(self, wanted: JobFilter, limit: int) -> int:
        return await self._read(_role(wanted), listing.count, wanted, limit)

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        return await self._read(READ, jobs.attempts, job_id)

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        return await self._write(SUBMIT, jobs.cancel, tenant, job_id, reason)

    async def reschedule_job(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> bool:
        return await self._write(SUBMIT, jobs.reschedule, tenant, job_id, due_at, priority)

    async def resolve_dead_job(self, tenant: str, job_id: UUID, retry: JobDraft | None) -> bool:
        return await self._write(SUBMIT, jobs.resolve_dead, tenant, job_id, retry)

    async def queues(self, counted: bool = False, wanted: QueueFilter = ALL_QUEUES) -> list[Queue]:
        return await self._read(READ, queues.known, counted, wanted)

    async def set_queue(self, queue: Queue) -> None:
        await self._write(SUBMIT, queues.set_queue, queue)

    # -- jobs, for workers
    async def claim(self, request: ClaimRequest) -> Claims:
        rows, more = await self._write(SWEEP if request.sweep else CLAIM, claim.claim, request, self._sweep)
        return Claims([claimed_of(row) for row in rows], more)

    async def due_jobs(self, request: ClaimRequest) -> Due:
        read = claim.due_jobs if request.segments else claim.next_due
        return await self._read(CLAIM, read, request)

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        if not settlements:
            return Settled([], [])
        refused, started = await self._write(SETTLE, settle.settle, settlements, successors)
        return Settled(refused, [claimed_of(row) for row in started])

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        return [claimed_of(row) for row in await self._read(SWEEP, nodes.running_jobs, selection, limit)]

    async def save_progress(self, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        return await self._write(PROGRESS, checkpoints.save, updates) if updates else []

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        return await self._write(PROGRESS, checkpoints.take_once, job_id, attempt, key, nonce)

    # -- schedules
    async def write_schedule(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None = None,
    ) -> Schedule | None:
        return await self._write(SUBMIT, schedules.write, tenant, name, state, expect_version, author)

    async def get_schedule(self, tenant: str, name: str | UUID) -> Schedule | None:
        return await self._read(READ, schedules.get, tenant, name)

    async def list_schedules(
        self, wanted: ScheduleFilter | DueSchedules, limit: int, after_name: str | None = None
    ) -> list[Schedule]:
        if isinstance(wanted, DueSchedules):
            return await self._read(SWEEP, schedules.due, wanted, limit)
        return await self._read(READ, schedules.by_name, wanted, limit, after_name)

    async def list_versions(
        self, tenant: str, name: str, limit: int, before: int | None = None
    ) -> list[ScheduleVersion]:
        return await self._read(READ, schedules.versions, tenant, name, limit, before)

    async def fire(self, firings: Sequence[Firing]) -> int:
        return await self._write(SWEEP, schedules.fire, firings) if firings else 0

    # -- nodes
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        return await self._write(HEARTBEAT, nodes.join, draft, ttl, self._owner_locks)

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        return await self._write(HEARTBEAT, nodes.beat, node, ttl)

    async def leave(self, node: NodeId) -> None:
        await self._write(HEARTBEAT, nodes.leave, node)

    async def nodes(self, living: bool = False, counted: bool = False) -> list[Node]:
        return await self._read(READ, nodes.known, living, counted)

    async def expire_nodes(self, me: NodeId) -> list[NodeId]:
        if not await self._read(SWEEP, nodes.suspects, me, self._owner_locks):
            return []
        return await self._write(SWEEP, nodes.expire, me, self._owner_locks)

    # -- records and events
    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None:
        return await self._read(READ, records.get, kind, tenant, key)

    async def put_record(
        self,
        kind: str,
        tenant: str,
        key: str,
        value: bytes | None,
        expect: int | None = None,
        expires_at: Micros | None = None,
    ) -> int:
        return await self._write(SUBMIT, records.put, kind, tenant, key, value, expect, expires_at)

    async def list_records(
        self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None
    ) -> list[Record]:
        return await self._read(READ, records.page, kind, tenant, limit, after)

    async def add_events(self, events: Sequence[bytes]) -> None:
        if events:
            await self._write(EVENT, event_log.add, events)

    async def list_events(self, after: int, limit: int) -> EventPage:
        return await self._read(READ, event_log.page, after, limit)

    # -- everything, for a copy
    async def read_rows(self, kind: RowKind, after: RowKey | None, limit: int) -> list[StoredRow]:
        return await self._read(READ, bulk.read, kind, after, limit)

    async def write_rows(
        self, kind: RowKind, rows: Sequence[StoredRow], after: RowKey | None, until: RowKey | None
    ) -> None:
        await self._write(SUBMIT, bulk.write, kind, rows, after, until)

    # -- retention and hints
    async def prune(self, old: Micros | Sequence[UUID], targets: Mapping[str, Micros] | None = None) -> int:
        if not isinstance(old, int):
            rows = [(job_id.bytes,) for job_id in old]
            return await self._write(SWEEP, retention.forget, rows) if rows else 0
        await self._write(SWEEP, retention.prune_others, old)
        total, batch = 0, retention.BATCH
        while batch == retention.BATCH:
            batch = await self._write(SWEEP, retention.prune_jobs, old)
            total += batch
        return total + await self._prune_targets(
            {target: instant for target, instant in (targets or {}).items() if instant > old}
        )

    async def _prune_targets(self, instants: Mapping[str, Micros]) -> int:
        total, start = 0, self._retention.start(instants)
        while start is not None:
            ids, start = await self._read(SWEEP, retention.of_targets, instants, start)
            for at in range(0, len(ids), retention.BATCH):
                total += await self._write(SWEEP, retention.forget, ids[at : at + retention.BATCH])
        self._retention.done(instants)
        return total


def _role(wanted: JobFilter) -> str:
    return SEARCH if wanted.is_search else LIST

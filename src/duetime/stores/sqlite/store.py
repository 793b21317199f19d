"""The SQLite store. Every verb runs on the thread of the writer or of the reader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from duetime.clock import wall_micros
from duetime.errors import NotOpen
from duetime.model.hint import Hint
from duetime.model.instant import Micros
from duetime.model.job import Attempt, CancelReply, Claimed, Job, JobDraft, JobFilter
from duetime.model.lease import Beat, Lease, Node, NodeDraft, NodeId
from duetime.model.limit import ALL_QUEUES, Queue, QueueFilter
from duetime.model.schedule import Firing, Schedule, ScheduleFilter, ScheduleVersion
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, Rule
from duetime.store import (
    AttemptUpdate,
    CallerTransaction,
    Capabilities,
    ClaimRequest,
    Claims,
    Due,
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
    TaskTransaction,
    Unsubscribe,
)
from duetime.stores.sqlite import (
    caller_transaction,
    checkpoints,
    claim,
    event_log,
    file_locks,
    jobs,
    listing,
    location,
    nodes,
    queues,
    records,
    retention,
    schedules,
    schema,
    settle,
    unique,
)
from duetime.stores.sqlite.limits import PermitSweep
from duetime.stores.sqlite.notifier import SqliteNotifier
from duetime.stores.sqlite.reader import SqliteReader
from duetime.stores.sqlite.rows import claimed_of
from duetime.stores.sqlite.session import SqliteSession, SqliteTransaction
from duetime.stores.sqlite.task_transaction import TaskTransactionThread
from duetime.stores.sqlite.threads import ConnectionThread
from duetime.stores.sqlite.writer import SqliteWriter

Answer = TypeVar("Answer")
P = ParamSpec("P")


class SqliteStore:
    """One file. The clock is that of this machine, on which all its users run."""

    capabilities = Capabilities(
        durable=True,
        shared=True,
        hints=True,
        owner_gone=file_locks.AVAILABLE,
        transactions=True,
        embedded=True,
    )

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = SqliteWriter(path, self._committed)
        self._writing: ConnectionThread[SqliteTransaction] | None = None
        self._reading: ConnectionThread[SqliteSession] | None = None
        self._task_transactions: TaskTransactionThread | None = None
        self._notifier = SqliteNotifier(path, lambda: self._writer.counted_changes)
        self._locks = file_locks.NodeLocks(path)
        self._sweep = PermitSweep()
        self._retention = retention.TargetRetention()

    @staticmethod
    def from_url(url: str) -> SqliteStore:
        return SqliteStore(location.path_of(url))

    # -- lifecycle
    async def open(self) -> None:
        """Creates the file if it is missing, and brings an older one to this version."""
        if self._writing is None:
            await self.migrate()
            self._writing = ConnectionThread("duetime sqlite writer", self._writer)

    async def close(self) -> None:
        self._notifier.close()
        threads: list[ConnectionThread[Any] | None] = [self._task_transactions, self._reading, self._writing]
        self._task_transactions = self._reading = self._writing = None
        for thread in threads:
            if thread is not None:
                await thread.close()
        self._locks.close()

    async def migrate(self) -> Migration:
        location.check(self.path)
        return await asyncio.to_thread(schema.migrate, self.path)

    def clone(self) -> SqliteStore:
        return SqliteStore(self.path)

    async def time(self) -> Micros:
        return wall_micros()

    # -- jobs, for callers
    async def add_jobs(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        return await self._writer_thread().call(jobs.Addition(drafts)) if drafts else []

    async def add_unique(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        return await self._write(unique.admit, draft, rule)

    def within(self, connection: Any) -> CallerTransaction:
        return caller_transaction.within(connection, self.path)

    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        if announce:
            self._notifier.awaited.add(job_id)  # before it is read: it may end at any time
        found = await self._read(jobs.get, tenant, job_id)
        if announce and (found is None or found.state.final):
            self._notifier.awaited.discard(job_id)
        return found

    async def list_jobs(
        self, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None = None
    ) -> list[Job]:
        return await self._read(listing.jobs, wanted, limit, before)

    async def count_jobs(self, wanted: JobFilter, limit: int) -> int:
        return await self._read(listing.count, wanted, limit)

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        return await self._read(jobs.attempts, job_id)

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        return await self._write(jobs.cancel, tenant, job_id, reason)

    async def reschedule_job(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> bool:
        return await self._write(jobs.reschedule, tenant, job_id, due_at, priority)

    async def resolve_dead_job(self, tenant: str, job_id: UUID, retry: JobDraft | None) -> bool:
        return await self._write(jobs.resolve_dead, tenant, job_id, retry)

    async def queues(self, counted: bool = False, wanted: QueueFilter = ALL_QUEUES) -> list[Queue]:
        return await self._read(queues.known, wall_micros(), counted, wanted)

    async def set_queue(self, queue: Queue) -> None:
        await self._write(queues.set_queue, queue)

    # -- jobs, for workers
    async def claim(self, request: ClaimRequest) -> Claims:
        rows, more = await self._write(claim.claim, request, self._sweep)
        return Claims([claimed_of(row) for row in rows], more)

    async def due_jobs(self, request: ClaimRequest) -> Due:
        read = claim.due_jobs if request.segments else claim.next_due
        return await self._read(read, request, wall_micros())

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        if not settlements:
            return Settled([], [])
        refused, started = await self._write(settle.settle, settlements, successors)
        return Settled(refused, [claimed_of(row) for row in started])

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        return [
            claimed_of(row) for row in await self._read(nodes.running_jobs, selection, limit, wall_micros())
        ]

    async def save_progress(self, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        return await self._write(checkpoints.save, updates) if updates else []

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        return await self._write(checkpoints.take_once, job_id, attempt, key, nonce)

    async def begin_transaction(self) -> TaskTransaction:
        self._writer_thread()
        if self._task_transactions is None:
            self._task_transactions = TaskTransactionThread(self.path, self._committed)
        return await self._task_transactions.begin()

    # -- schedules
    async def write_schedule(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None = None,
    ) -> Schedule | None:
        return await self._write(schedules.write, tenant, name, state, expect_version, author)

    async def get_schedule(self, tenant: str, name: str | UUID) -> Schedule | None:
        return await self._read(schedules.get, tenant, name)

    async def list_schedules(
        self, wanted: ScheduleFilter, limit: int, after_name: str | None = None
    ) -> list[Schedule]:
        return await self._read(schedules.by_name, wanted, limit, after_name)

    async def list_versions(
        self, tenant: str, name: str, limit: int, before: int | None = None
    ) -> list[ScheduleVersion]:
        return await self._read(schedules.versions, tenant, name, limit, before)

    async def due_schedules(self, segments: Sequence[int], until: Micros, limit: int) -> list[Schedule]:
        return await self._read(schedules.due, segments, until, limit)

    async def fire(self, firings: Sequence[Firing]) -> int:
        return await self._write(schedules.fire, firings) if firings else 0

    # -- nodes and leases
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        return await self._write(nodes.join, draft, ttl, self._locks)

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        return await self._write(nodes.beat, node, ttl)

    async def leave(self, node: NodeId) -> None:
        await self._write(nodes.leave, node)
        self._locks.release(node)

    async def nodes(self, living: bool = False) -> list[Node]:
        return await self._read(nodes.known, living)

    async def expire_nodes(self, me: NodeId) -> list[NodeId]:
        if not await self._read(nodes.suspects, me, wall_micros(), self._locks):
            return []
        return await self._write(nodes.expire, me, self._locks)

    async def hold_leases(self, node: NodeId, names: Sequence[str]) -> list[str]:
        return await self._write(nodes.hold_leases, node, names)

    async def leases(self) -> list[Lease]:
        return await self._read(nodes.leases)

    # -- records and events
    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None:
        return await self._read(records.get, kind, tenant, key, wall_micros())

    async def put_record(
        self,
        kind: str,
        tenant: str,
        key: str,
        value: bytes | None,
        expect: int | None = None,
        expires_at: Micros | None = None,
    ) -> int:
        return await self._write(records.put, kind, tenant, key, value, expect, expires_at)

    async def list_records(
        self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None
    ) -> list[Record]:
        return await self._read(records.page, kind, tenant, limit, after, wall_micros())

    async def add_events(self, events: Sequence[bytes]) -> None:
        if events:
            await self._write(event_log.add, events)

    async def list_events(self, after: int, limit: int) -> EventPage:
        return await self._read(event_log.page, after, limit)

    # -- retention and hints
    async def prune(self, before: Micros, targets: Mapping[str, Micros] | None = None) -> int:
        await self._write(retention.prune_others, before)
        total, batch = 0, retention.BATCH
        while batch == retention.BATCH:
            batch = await self._write(retention.prune_jobs, before)
            total += batch
        return total + await self._prune_targets(
            {target: instant for target, instant in (targets or {}).items() if instant > before}
        )

    async def _prune_targets(self, instants: Mapping[str, Micros]) -> int:
        total, start = 0, self._retention.start(instants)
        while start is not None:
            ids, start = await self._read(retention.of_targets, instants, start)
            for at in range(0, len(ids), retention.BATCH):
                total += await self._write(retention.forget, ids[at : at + retention.BATCH])
        self._retention.done(instants)
        return total

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        self._writer_thread()
        return self._notifier.subscribe(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        await self._write(SqliteTransaction.tell, hints)

    def _committed(self, served: list[SqliteTransaction]) -> None:
        """Called after the commit, on the thread that wrote."""
        hints = [hint for transaction in served for hint in transaction.hints]
        if self._notifier.awaited:
            hints += self._notifier.awaited.ended(row for transaction in served for row in transaction.ended)
        if hints:
            self._notifier.notify(hints)

    def _writer_thread(self) -> ConnectionThread[SqliteTransaction]:
        if self._writing is None:
            raise NotOpen("the SQLite store is not open: await open() first")
        return self._writing

    async def _write(
        self, work: Callable[Concatenate[SqliteTransaction, P], Answer], *args: P.args, **kwargs: P.kwargs
    ) -> Answer:
        return await self._writer_thread().call(lambda transaction: work(transaction, *args, **kwargs))

    async def _read(
        self, work: Callable[Concatenate[SqliteSession, P], Answer], *args: P.args, **kwargs: P.kwargs
    ) -> Answer:
        self._writer_thread()
        if self._reading is None:
            self._reading = ConnectionThread("duetime sqlite reader", SqliteReader(self.path))
        return await self._reading.call(lambda session: work(session, *args, **kwargs))

"""The SQLite store's face: every verb is handed to the writer's or the reader's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from duetime.clock import monotonic_micros, wall_micros
from duetime.errors import NotOpen
from duetime.model.attempt import Attempt
from duetime.model.hint import Hint, JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import CancelReply, Claimed, Job, JobDraft, JobFilter
from duetime.model.lease import Beat, Lease, Node, NodeDraft, NodeId
from duetime.model.limit import Queue
from duetime.model.schedule import Firing, Schedule, ScheduleDraft, ScheduleFilter, ScheduleVersion
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, Rule
from duetime.store import Capabilities, ClaimRequest, Guest, MarkReply, Migration, Note, QueueCount, Record, Unsubscribe
from duetime.store import Transaction as TransactionOfTask
from duetime.stores.sqlite import (
    claiming,
    edges,
    guest,
    jobs,
    listing,
    location,
    lockfile,
    locks,
    nodes,
    noting,
    outside,
    queues,
    schedules,
    schema,
    settling,
    task_connection,
    uniqueness,
    upkeep,
)
from duetime.stores.sqlite.awaited import Awaited
from duetime.stores.sqlite.gates import Cursors
from duetime.stores.sqlite.hints import Listeners
from duetime.stores.sqlite.holding import Holder, HoldingThread
from duetime.stores.sqlite.reader import Reader
from duetime.stores.sqlite.rows import claimed_of
from duetime.stores.sqlite.session import Session, Transaction
from duetime.stores.sqlite.thread import ServingThread
from duetime.stores.sqlite.writer import Writer

Answer = TypeVar("Answer")
TOLD_WITHIN = SECOND // 20
NOT_OPEN = "the SQLite store is not open: await open() first"


class SqliteStore:
    """One file. The clock is this machine's, and so are all its users."""

    capabilities = Capabilities(durable=True, shared=True, hints=True, owner_gone=lockfile.AVAILABLE, transactions=True, embedded=True)

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = Writer(path, self._committed)
        self._writing: ServingThread[Transaction] | None = None
        self._reading: ServingThread[Session] | None = None
        self._holding: HoldingThread | None = None
        self._awaited = Awaited()
        self._listeners = Listeners(path, lambda: self._writer.pulses, self._awaited)
        self._locks = locks.NodeLocks(path)
        self._queues: set[str] = set()  # names known to be stored
        self._cursors: Cursors = {}
        self._settled_at: Micros = 0
        self._retention = upkeep.Retention()

    @staticmethod
    def from_url(url: str) -> SqliteStore:
        return SqliteStore(location.path_of(url))

    @property
    def path(self) -> Path:
        return self._path

    # -- life ---------------------------------------------------------------------------------------------------------
    async def open(self) -> None:
        """An embedded store should just work: a new or older file is brought to this version."""
        if self._writing is None:
            await self.migrate()
            self._writing = ServingThread("duetime sqlite writer", self._writer)

    async def close(self) -> None:
        self._listeners.close()
        threads: list[ServingThread[Any] | None] = [self._holding, self._reading, self._writing]
        self._holding = self._reading = self._writing = None
        for thread in threads:
            if thread is not None:
                await thread.close()
        self._locks.close()

    async def migrate(self) -> Migration:
        location.check(self._path)
        return await asyncio.to_thread(schema.migrate, self._path)

    def twin(self) -> SqliteStore:
        return SqliteStore(self._path)

    async def time(self) -> Micros:
        return wall_micros()

    # -- jobs: what callers ask for -----------------------------------------------------------------------------------
    async def add_jobs(self, drafts: Sequence[JobDraft], again: bool = False) -> list[UUID]:
        return await self._write(jobs.Addition(drafts, self._queues)) if drafts else []

    async def add_unique(self, draft: JobDraft, rule: Rule, again: bool = False) -> Admission:
        return await self._write(lambda transaction: uniqueness.admit(transaction, draft, rule, self._queues))

    def guest(self, connection: Any) -> Guest:
        return guest.guest_of(connection, self._path, self._queues)

    async def get_job(self, tenant: str, job_id: UUID) -> Job | None:
        return await self._read(lambda session: jobs.get(session, tenant, job_id))

    async def list_jobs(self, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None = None) -> list[Job]:
        return await self._read(lambda session: listing.jobs(session, wanted, limit, before))

    async def count_matching(self, wanted: JobFilter, most: int) -> int:
        return await self._read(lambda session: listing.count(session, wanted, most))

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        return await self._read(lambda session: jobs.attempts(session, job_id))

    async def count_jobs(self) -> list[QueueCount]:
        return await self._read(lambda session: jobs.count(session, wall_micros()))

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        return await self._write(lambda transaction: jobs.cancel(transaction, tenant, job_id, reason))

    async def change_job(self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None) -> bool:
        return await self._write(lambda transaction: jobs.change(transaction, tenant, job_id, due_at, priority))

    async def revive_job(self, tenant: str, job_id: UUID, draft: JobDraft) -> bool:
        return await self._write(lambda transaction: jobs.revive(transaction, tenant, job_id, draft, self._queues))

    async def discard_job(self, tenant: str, job_id: UUID) -> bool:
        return await self._write(lambda transaction: jobs.discard(transaction, tenant, job_id))

    # -- jobs: what workers ask for -----------------------------------------------------------------------------------
    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        rows = await self._write(lambda transaction: claiming.claim(transaction, request, self._cursors))
        return [claimed_of(row) for row in rows]

    async def next_due(self, request: ClaimRequest) -> Micros | None:
        return await self._read(lambda session: claiming.next_due(session, request, wall_micros()))

    async def settle(self, settlements: Sequence[Settlement]) -> list[UUID]:
        if not settlements:
            return []
        refused = await self._write(lambda transaction: settling.settle(transaction, settlements))
        self._settled_at = monotonic_micros()
        return refused

    async def extend(self, job_id: UUID, attempt: int, due_at: Micros) -> bool:
        return await self._write(lambda transaction: outside.extend(transaction, job_id, attempt, due_at))

    async def overdue(self, limit: int) -> list[Claimed]:
        return [claimed_of(row) for row in await self._read(lambda session: outside.overdue(session, wall_micros(), limit))]

    async def held(self, node: NodeId) -> list[Claimed]:
        return [claimed_of(row) for row in await self._read(lambda session: nodes.held(session, node))]

    async def begin(self, job_id: UUID, attempt: int) -> bool:
        return await self._write(lambda transaction: transaction.change("begin", (job_id.bytes, attempt)) == 1)

    async def save(self, notes: Sequence[Note]) -> list[UUID]:
        return await self._write(lambda transaction: noting.save(transaction, notes)) if notes else []

    async def mark(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
        return await self._write(lambda transaction: noting.mark(transaction, job_id, attempt, key, nonce))

    async def transact(self) -> TransactionOfTask:
        if self._writing is None:
            raise NotOpen(NOT_OPEN)
        if self._holding is None:
            self._holding = HoldingThread(Holder(self._path, self._committed))
        return await task_connection.begin(self._holding)

    async def await_job(self, job_id: UUID) -> bool:
        self._awaited.add(job_id)  # before it is looked for: it may end at any time
        live: bool = await self._read(lambda session: session.value("is_live", (job_id.bytes,)) == 1)
        if not live:
            self._awaited.discard(job_id)
        return live

    async def queues(self) -> list[Queue]:
        return await self._read(queues.known)

    async def set_queue(self, queue: Queue) -> None:
        await self._write(lambda transaction: queues.set_queue(transaction, queue))

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def put_schedule(
        self, draft: ScheduleDraft, next_fire_time: Micros | None, expect_version: int | None, author: str | None = None
    ) -> Schedule | None:
        return await self._write(lambda transaction: schedules.put(transaction, draft, next_fire_time, expect_version, author))

    async def get_schedule(self, tenant: str, name: str) -> Schedule | None:
        return await self._read(lambda session: schedules.get(session, tenant, name))

    async def get_schedule_by_id(self, tenant: str, schedule_id: UUID) -> Schedule | None:
        return await self._read(lambda session: schedules.by_id(session, tenant, schedule_id))

    async def list_schedules(self, wanted: ScheduleFilter, limit: int, after_name: str | None = None) -> list[Schedule]:
        return await self._read(lambda session: schedules.by_name(session, wanted, limit, after_name))

    async def pause_schedule(self, tenant: str, name: str, note: str | None, author: str | None = None) -> Schedule | None:
        return await self._write(lambda transaction: schedules.pause(transaction, tenant, name, note, author))

    async def resume_schedule(
        self, tenant: str, name: str, next_fire_time: Micros | None, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        return await self._write(lambda transaction: schedules.resume(transaction, tenant, name, next_fire_time, author, expect_version))

    async def remove_schedule(
        self, tenant: str, name: str, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        return await self._write(lambda transaction: schedules.remove(transaction, tenant, name, author, expect_version))

    async def list_versions(self, tenant: str, name: str, limit: int, before: int | None = None) -> list[ScheduleVersion]:
        return await self._read(lambda session: schedules.versions(session, tenant, name, limit, before))

    async def due_schedules(self, segments: Sequence[int], until: Micros, limit: int) -> list[Schedule]:
        return await self._read(lambda session: schedules.due(session, segments, until, limit))

    async def fire(self, firings: Sequence[Firing]) -> int:
        return await self._write(lambda transaction: schedules.fire(transaction, firings, self._queues)) if firings else 0

    # -- nodes and leases ---------------------------------------------------------------------------------------------
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        return await self._write(lambda transaction: nodes.join(transaction, draft, ttl, self._locks))

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        return await self._write(lambda transaction: nodes.beat(transaction, node, ttl))

    async def leave(self, node: NodeId) -> None:
        await self._write(lambda transaction: nodes.leave(transaction, node))
        self._locks.release(node)

    async def nodes(self, living: bool = False) -> list[Node]:
        return await self._read(lambda session: nodes.known(session, living))

    async def bury(self, me: NodeId) -> list[NodeId]:
        if not await self._read(lambda session: nodes.suspects(session, me, wall_micros(), self._locks)):
            return []
        return await self._write(lambda transaction: nodes.bury(transaction, me, self._locks))

    async def orphans(self, limit: int) -> list[Claimed]:
        return [claimed_of(row) for row in await self._read(lambda session: nodes.orphans(session, limit))]

    async def take_leases(self, node: NodeId, names: Sequence[str]) -> list[str]:
        return await self._write(lambda transaction: nodes.take_leases(transaction, node, names))

    async def drop_leases(self, node: NodeId, names: Sequence[str]) -> None:
        await self._write(lambda transaction: nodes.drop_leases(transaction, node, names))

    async def leases(self) -> list[Lease]:
        return await self._read(nodes.leases)

    # -- documents and events of the edges ----------------------------------------------------------------------------
    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None:
        return await self._read(lambda session: edges.get_record(session, kind, tenant, key, wall_micros()))

    async def put_record(
        self, kind: str, tenant: str, key: str, value: bytes, expect: int | None = None, expires_at: Micros | None = None
    ) -> int:
        record = Record(kind, tenant, key, value, 0, expires_at)
        return await self._write(lambda transaction: edges.put_record(transaction, record, expect))

    async def delete_record(self, kind: str, tenant: str, key: str) -> bool:
        return await self._write(lambda transaction: edges.delete_record(transaction, kind, tenant, key))

    async def list_records(self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None) -> list[Record]:
        return await self._read(lambda session: edges.list_records(session, kind, tenant, limit, after, wall_micros()))

    async def add_events(self, events: Sequence[bytes]) -> None:
        if events:
            await self._write(lambda transaction: edges.add_events(transaction, events))

    async def list_events(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        return await self._read(lambda session: edges.list_events(session, after, limit))

    async def last_event(self) -> int:
        return await self._read(edges.last_event)

    # -- upkeep and hints ---------------------------------------------------------------------------------------------
    async def prune(self, before: Micros, targets: Mapping[str, Micros] | None = None) -> int:
        await self._write(partial(upkeep.begin, before=before))
        total, batch = 0, upkeep.BATCH
        while batch == upkeep.BATCH:
            batch = await self._write(partial(upkeep.prune, before=before))
            total += batch
        return total + await self._prune_targets({target: instant for target, instant in (targets or {}).items() if instant > before})

    async def _prune_targets(self, instants: Mapping[str, Micros]) -> int:
        total, start = 0, self._retention.start(instants)
        while start is not None:
            ids, start = await self._read(partial(upkeep.of_targets, instants=instants, start=start))
            for at in range(0, len(ids), upkeep.BATCH):
                total += await self._write(partial(upkeep.forget, ids=ids[at : at + upkeep.BATCH]))
        self._retention.done(instants)
        return total

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        if self._writing is None:
            raise NotOpen(NOT_OPEN)
        return self._listeners.add(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        """A worker that has settled says once more, less precisely, what the settlement told already; that would cost another commit."""
        since, self._settled_at = monotonic_micros() - self._settled_at, 0
        if since > TOLD_WITHIN or not all(isinstance(hint, JobHint) for hint in hints):
            await self._write(lambda transaction: transaction.tell(hints))

    def _committed(self, served: list[Transaction]) -> None:
        """On the thread that wrote, after the commit."""
        hints = [hint for transaction in served for hint in transaction.hints]
        if self._awaited:
            hints += self._awaited.ended(row for transaction in served for row in transaction.ended)
        if hints:
            self._listeners.tell(hints)
        for transaction in served:
            if transaction.queues:
                self._queues |= transaction.queues

    async def _write(self, work: Callable[[Transaction], Answer]) -> Answer:
        if self._writing is None:
            raise NotOpen(NOT_OPEN)
        return await self._writing.call(work)

    async def _read(self, work: Callable[[Session], Answer]) -> Answer:
        if self._writing is None:
            raise NotOpen(NOT_OPEN)
        if self._reading is None:
            self._reading = ServingThread("duetime sqlite reader", Reader(self._path))
        return await self._reading.call(work)

"""The PostgreSQL store: each verb goes to the component that implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from duetime.errors import StoreError, StoreUnavailable
from duetime.model.hint import Hint
from duetime.model.identity import StoreIdentity
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
    CallerTransaction,
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
    TaskTransaction,
    Unsubscribe,
)
from duetime.stores.postgres import retention, schema
from duetime.stores.postgres.address import PostgresAddress, parse
from duetime.stores.postgres.bulk import PostgresRows
from duetime.stores.postgres.caller_transaction import caller_transaction
from duetime.stores.postgres.checkpoints import PostgresCheckpoints
from duetime.stores.postgres.claim import PostgresClaims
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.event_log import PostgresEventLog
from duetime.stores.postgres.external import ExternalJobs
from duetime.stores.postgres.jobs import PostgresJobs
from duetime.stores.postgres.nodes import PostgresNodes
from duetime.stores.postgres.notifier import Notifier
from duetime.stores.postgres.queues import PostgresQueues
from duetime.stores.postgres.records import PostgresRecords
from duetime.stores.postgres.schedules import PostgresSchedules
from duetime.stores.postgres.settle import PostgresSettlements
from duetime.stores.postgres.task_transaction import TaskSessions
from duetime.stores.postgres.unique import UniqueJobs


class PostgresStore:
    def __init__(self, address: PostgresAddress, *, is_clone: bool = False) -> None:
        direct = not address.pooled
        self.capabilities = Capabilities(
            durable=True,
            shared=True,
            hints=direct,
            owner_gone=direct,
            transactions=True,
            replicas=True,
        )
        self._address = address
        self._is_clone = is_clone
        self._connections = PostgresConnections(address)
        self._notifier = Notifier(self._connections)
        self._queues = PostgresQueues(self._connections, self._notifier)
        self._claims = PostgresClaims(self._connections, self._notifier)
        self._settlements = PostgresSettlements(self._connections, self._notifier)
        external = ExternalJobs(self._connections, self._settlements)
        self._jobs = PostgresJobs(self._connections, self._notifier, self._queues, external)
        self._unique = UniqueJobs(self._connections, self._notifier, self._jobs, self._queues)
        self._records = PostgresRecords(self._connections)
        self._events = PostgresEventLog(self._connections, self._notifier)
        self._schedules = PostgresSchedules(self._connections, self._notifier)
        self._nodes = PostgresNodes(self._connections)
        self._checkpoints = PostgresCheckpoints(self._connections)
        self._sessions = TaskSessions(address, self._notifier)
        self._rows = PostgresRows(self._connections)
        self._home: Micros | None = None

    @classmethod
    def from_url(cls, url: str) -> PostgresStore:
        """`pooler=transaction` in the query: the server is behind PgBouncer in transaction mode."""
        return cls(parse(url))

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.place!r})"

    # -- opening and closing
    async def open(self) -> None:
        self._connections.reopen()
        self._sessions.reopen()
        self._home = (await schema.check_schema(self._connections, temporary=self._is_clone)).home
        self._notifier.listen()

    async def close(self) -> None:
        await self._notifier.close()
        await self._nodes.close()
        await self._sessions.close()
        await self._connections.close()

    async def migrate(self, dry_run: bool = False) -> Migration:
        return await schema.migrate(self._connections, dry_run)

    def clone(self) -> PostgresStore:
        return PostgresStore(self._address, is_clone=True)

    async def time(self) -> Micros:
        now: Micros = await self._connections.read.value(SQL["time"])
        return now

    async def identity(self) -> StoreIdentity:
        """A dump makes other tables, also in the same database; a standby has the same ones. Recovery to an
        earlier point begins a new timeline, as a failover does."""
        read = self._connections.read
        try:
            row = await read.row(SQL["identity"])
        except StoreUnavailable:
            raise
        except StoreError:
            row = await read.row(SQL["identity_of_tables"])
        return StoreIdentity(row["data"], row["server"], log=int(row["log"]), log_at=row["at"] or 0)

    # -- jobs and queues
    async def add_jobs(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        return await self._jobs.add(drafts, is_retry)

    async def add_unique(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        return await self._unique.add(draft, rule, is_retry)

    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        return await self._jobs.get(tenant, job_id, announce)

    async def list_jobs(
        self, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None = None
    ) -> list[Job]:
        return await self._jobs.page(wanted, limit, before)

    async def count_jobs(self, wanted: JobFilter, limit: int) -> int:
        return await self._jobs.count(wanted, limit)

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        return await self._jobs.attempts(job_id)

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        return await self._jobs.cancel(tenant, job_id, reason)

    async def reschedule_job(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> bool:
        return await self._jobs.reschedule(tenant, job_id, due_at, priority)

    async def resolve_dead_job(self, tenant: str, job_id: UUID, retry: JobDraft | None) -> bool:
        return await self._jobs.resolve_dead(tenant, job_id, retry)

    async def queues(self, counted: bool = False, wanted: QueueFilter = ALL_QUEUES) -> list[Queue]:
        if wanted.for_workers:
            return await self._queues.for_workers(wanted)
        return await self._queues.page(counted, wanted)

    async def set_queue(self, queue: Queue) -> None:
        await self._queues.set(queue)

    # -- work
    async def claim(self, request: ClaimRequest) -> Claims:
        return await self._claims.claim(request)

    async def due_jobs(self, request: ClaimRequest) -> Due:
        if request.segments:
            return await self._claims.due_jobs(request)
        return Due([], await self._claims.next_due(request))

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        return await self._settlements.settle(settlements, successors)

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        return await self._nodes.running_jobs(selection, limit)

    async def save_progress(self, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        return await self._checkpoints.save(updates)

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        return await self._checkpoints.take_once(job_id, attempt, key, nonce)

    # -- transactions
    def within(self, connection: Any) -> CallerTransaction:
        return caller_transaction(connection, self._home, self._queues)

    async def begin_transaction(self) -> TaskTransaction:
        return await self._sessions.begin()

    # -- schedules
    async def write_schedule(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None = None,
    ) -> Schedule | None:
        return await self._schedules.write(tenant, name, state, expect_version, author)

    async def get_schedule(self, tenant: str, name: str | UUID) -> Schedule | None:
        return await self._schedules.get(tenant, name)

    async def list_schedules(
        self, wanted: ScheduleFilter | DueSchedules, limit: int, after_name: str | None = None
    ) -> list[Schedule]:
        return await self._schedules.page(wanted, limit, after_name)

    async def list_versions(
        self, tenant: str, name: str, limit: int, before: int | None = None
    ) -> list[ScheduleVersion]:
        return await self._schedules.versions(tenant, name, limit, before)

    async def fire(self, firings: Sequence[Firing]) -> int:
        return await self._schedules.fire(firings)

    # -- nodes
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        return await self._nodes.join(draft, ttl)

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        return await self._nodes.beat(node, ttl)

    async def leave(self, node: NodeId) -> None:
        await self._nodes.leave(node)

    async def nodes(self, living: bool = False) -> list[Node]:
        return await self._nodes.all(living)

    async def expire_nodes(self, me: NodeId) -> list[NodeId]:
        return await self._nodes.expire(me)

    # -- records and events
    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None:
        return await self._records.get(kind, tenant, key)

    async def put_record(
        self,
        kind: str,
        tenant: str,
        key: str,
        value: bytes | None,
        expect: int | None = None,
        expires_at: Micros | None = None,
    ) -> int:
        return await self._records.put(kind, tenant, key, value, expect, expires_at)

    async def list_records(
        self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None
    ) -> list[Record]:
        return await self._records.page(kind, tenant, limit, after)

    async def add_events(self, events: Sequence[bytes]) -> None:
        await self._events.add(events)

    async def list_events(self, after: int, limit: int) -> EventPage:
        return await self._events.page(after, limit)

    # -- everything, for a copy
    async def read_rows(self, kind: RowKind, after: RowKey | None, limit: int) -> list[StoredRow]:
        return await self._rows.read(kind, after, limit)

    async def write_rows(
        self, kind: RowKind, rows: Sequence[StoredRow], after: RowKey | None, until: RowKey | None
    ) -> None:
        await self._rows.write(kind, rows, after, until)

    # -- retention and hints
    async def prune(self, old: Micros | Sequence[UUID], targets: Mapping[str, Micros] | None = None) -> int:
        """Whole days at a time where possible, and so an estimate."""
        if not isinstance(old, int):
            return await retention.forget(self._connections, old)
        return await retention.prune(self._connections, old, targets or {})

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        return self._notifier.subscribe(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        """Does not wait until the hints are sent: a settling worker has more to do."""
        self._notifier.notify(hints, also_late=True)

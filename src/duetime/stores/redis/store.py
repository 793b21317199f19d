"""The Redis store: each verb goes to the component that implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn
from uuid import UUID

from duetime.errors import ConfigError, InvalidInput
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
from duetime.stores.redis import retention, schema
from duetime.stores.redis.address import RedisAddress, parse
from duetime.stores.redis.bulk import RedisRows
from duetime.stores.redis.checkpoints import RedisCheckpoints
from duetime.stores.redis.claim import RedisClaims
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.event_log import RedisEventLog
from duetime.stores.redis.jobs import RedisJobs
from duetime.stores.redis.listing import RedisListing
from duetime.stores.redis.nodes import RedisNodes
from duetime.stores.redis.notifier import RedisNotifier
from duetime.stores.redis.queues import RedisQueues
from duetime.stores.redis.records import RedisRecords
from duetime.stores.redis.schedules import RedisSchedules
from duetime.stores.redis.settle import RedisSettlements
from duetime.stores.redis.unique import RedisUniqueJobs


class RedisStore:
    capabilities = Capabilities(durable=True, shared=True, hints=True, owner_gone=False)

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._connection = RedisConnection(address)
        self._notifier = RedisNotifier(self._connection)
        self._queues = RedisQueues(self._connection)
        self._claims = RedisClaims(self._connection, self._notifier)
        self._settlements = RedisSettlements(self._connection, self._notifier)
        self._jobs = RedisJobs(self._connection, self._notifier, self._settlements)
        self._listing = RedisListing(self._connection)
        self._unique = RedisUniqueJobs(self._connection, self._notifier)
        self._records = RedisRecords(self._connection)
        self._events = RedisEventLog(self._connection, self._notifier)
        self._schedules = RedisSchedules(self._connection, self._notifier)
        self._nodes = RedisNodes(self._connection)
        self._checkpoints = RedisCheckpoints(self._connection)
        self._rows = RedisRows(self._connection, self._nodes)

    @classmethod
    def from_url(cls, url: str) -> RedisStore:
        return cls(parse(url))

    def __repr__(self) -> str:
        return f"RedisStore({self._address.place!r})"

    # -- opening and closing
    async def open(self) -> None:
        self._connection.reopen()
        try:
            await schema.check(self._connection)
        except BaseException:
            await self._connection.close()
            raise
        self._notifier.open()

    async def close(self) -> None:
        await self._notifier.close()
        await self._connection.close()

    async def migrate(self, dry_run: bool = False) -> Migration:
        return await schema.migrate(self._address, dry_run)

    def clone(self) -> RedisStore:
        return RedisStore(self._address)

    async def time(self) -> Micros:
        seconds, micros = await self._connection.command("TIME")
        return int(seconds) * 1_000_000 + int(micros)

    async def identity(self) -> StoreIdentity:
        """A server that was restarted and one that loaded a copied file look the same. Only the operator
        knows how long a store can have been without nodes."""
        return StoreIdentity(max_silence=self._address.max_silence)

    # -- jobs and queues
    async def add_jobs(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        return await self._jobs.add(drafts, is_retry)

    async def add_unique(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        return await self._unique.add(draft, rule)

    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        return await self._jobs.get(tenant, job_id, announce)

    async def list_jobs(
        self, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None = None
    ) -> list[Job]:
        return await self._listing.page(wanted, limit, before)

    async def count_jobs(self, wanted: JobFilter, limit: int) -> int:
        return await self._listing.count(wanted, limit)

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
        return await self._jobs.running_jobs(selection, limit)

    async def save_progress(self, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        return await self._checkpoints.save(updates)

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        return await self._checkpoints.take_once(job_id, attempt, key, nonce)

    # -- transactions
    def within(self, connection: Any) -> NoReturn:
        raise InvalidInput(
            "connection",
            "the Redis store has no database whose transaction a job could join: leave it out, and submit "
            "after your transaction has committed",
        )

    async def begin_transaction(self) -> NoReturn:
        raise ConfigError(
            "the Redis store has no transactions: a task that needs ctx.connection needs sqlite:/// or postgresql://"
        )

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
        if not isinstance(old, int):
            return await retention.forget(self._connection, old)
        return await retention.prune(self._connection, old, targets or {})

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        return self._notifier.subscribe(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        """Does not wait until the hints are sent: a settling worker has more to do."""
        self._notifier.notify(hints)

"""The PostgreSQL store's face: each verb goes to the part that knows how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from duetime.model.attempt import Attempt
from duetime.model.hint import Hint
from duetime.model.instant import Micros
from duetime.model.job import CancelReply, Claimed, Job, JobDraft, JobFilter
from duetime.model.lease import Beat, Lease, Node, NodeDraft, NodeId
from duetime.model.limit import Queue
from duetime.model.schedule import Firing, Schedule, ScheduleDraft, ScheduleFilter, ScheduleVersion
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, Rule
from duetime.store import Capabilities, ClaimRequest, Guest, MarkReply, Migration, Note, QueueCount, Record, Transaction, Unsubscribe
from duetime.stores.postgres import upkeep
from duetime.stores.postgres.address import Address, parse
from duetime.stores.postgres.bell import Bell
from duetime.stores.postgres.edges import Events, Records
from duetime.stores.postgres.guests import welcome
from duetime.stores.postgres.jobs import Jobs
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.postgres.nodes import Nodes
from duetime.stores.postgres.notes import Notes
from duetime.stores.postgres.outside import Outside
from duetime.stores.postgres.queues import Queues
from duetime.stores.postgres.schedules import Schedules
from duetime.stores.postgres.transactions import Sessions
from duetime.stores.postgres.unique import UniqueJobs
from duetime.stores.postgres.work import Work


class PostgresStore:
    def __init__(self, address: Address, *, is_twin: bool = False) -> None:
        direct = not address.pooled
        self.capabilities = Capabilities(durable=True, shared=True, hints=direct, owner_gone=direct, transactions=True)
        self._address = address
        self._is_twin = is_twin
        self._lines = Lines(address)
        self._bell = Bell(self._lines)
        self._queues = Queues(self._lines, self._bell)
        self._work = Work(self._lines, self._bell)
        self._outside = Outside(self._lines, self._work)
        self._jobs = Jobs(self._lines, self._bell, self._queues, self._outside)
        self._unique = UniqueJobs(self._lines, self._bell, self._jobs, self._queues)
        self._records = Records(self._lines)
        self._events = Events(self._lines, self._bell)
        self._schedules = Schedules(self._lines, self._bell)
        self._nodes = Nodes(self._lines)
        self._notes = Notes(self._lines, self._bell)
        self._sessions = Sessions(address, self._bell)
        self._home: Micros | None = None

    @classmethod
    def from_url(cls, url: str) -> PostgresStore:
        """`pooler=transaction` in the query says that PgBouncer, pooling by transaction, stands before the server."""
        return cls(parse(url))

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.place!r})"

    # -- life ---------------------------------------------------------------------------------------------------------
    async def open(self) -> None:
        self._lines.reopen()
        self._sessions.reopen()
        self._home = (await upkeep.check_schema(self._lines, passing=self._is_twin)).home
        self._bell.listen()

    async def close(self) -> None:
        await self._bell.close()
        await self._nodes.close()
        await self._sessions.close()
        await self._lines.close()

    async def migrate(self) -> Migration:
        return await upkeep.migrate(self._lines)

    def twin(self) -> PostgresStore:
        return PostgresStore(self._address, is_twin=True)

    async def time(self) -> Micros:
        moment: Micros = await self._lines.read.value(SQL["time"])
        return moment

    # -- jobs: what callers ask for -----------------------------------------------------------------------------------
    async def add_jobs(self, drafts: Sequence[JobDraft], again: bool = False) -> list[UUID]:
        return await self._jobs.add(drafts, again)

    async def add_unique(self, draft: JobDraft, rule: Rule, again: bool = False) -> Admission:
        return await self._unique.add(draft, rule, again)

    def guest(self, connection: Any) -> Guest:
        return welcome(connection, self._home, self._queues)

    async def get_job(self, tenant: str, job_id: UUID) -> Job | None:
        return await self._jobs.get(tenant, job_id)

    async def list_jobs(self, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None = None) -> list[Job]:
        return await self._jobs.page(wanted, limit, before)

    async def count_matching(self, wanted: JobFilter, most: int) -> int:
        return await self._jobs.matching(wanted, most)

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        return await self._jobs.attempts(job_id)

    async def count_jobs(self) -> list[QueueCount]:
        return await self._jobs.count()

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        return await self._jobs.cancel(tenant, job_id, reason)

    async def change_job(self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None) -> bool:
        return await self._jobs.change(tenant, job_id, due_at, priority)

    async def revive_job(self, tenant: str, job_id: UUID, draft: JobDraft) -> bool:
        return await self._jobs.revive(tenant, job_id, draft)

    async def discard_job(self, tenant: str, job_id: UUID) -> bool:
        return await self._jobs.discard(tenant, job_id)

    # -- jobs: what workers ask for -----------------------------------------------------------------------------------
    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        return await self._work.claim(request)

    async def next_due(self, request: ClaimRequest) -> Micros | None:
        return await self._work.next_due(request)

    async def settle(self, settlements: Sequence[Settlement]) -> list[UUID]:
        return await self._work.settle(settlements)

    async def extend(self, job_id: UUID, attempt: int, due_at: Micros) -> bool:
        return await self._outside.extend(job_id, attempt, due_at)

    async def overdue(self, limit: int) -> list[Claimed]:
        return await self._outside.overdue(limit)

    async def held(self, node: NodeId) -> list[Claimed]:
        return await self._nodes.held(node)

    async def begin(self, job_id: UUID, attempt: int) -> bool:
        return await self._work.begin(job_id, attempt)

    async def save(self, notes: Sequence[Note]) -> list[UUID]:
        return await self._notes.save(notes)

    async def mark(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
        return await self._notes.mark(job_id, attempt, key, nonce)

    async def transact(self) -> Transaction:
        return await self._sessions.begin()

    async def await_job(self, job_id: UUID) -> bool:
        return await self._notes.wait_for(job_id)

    async def queues(self) -> list[Queue]:
        return await self._queues.all()

    async def set_queue(self, queue: Queue) -> None:
        await self._queues.set(queue)

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def put_schedule(
        self, draft: ScheduleDraft, next_fire_time: Micros | None, expect_version: int | None, author: str | None = None
    ) -> Schedule | None:
        return await self._schedules.put(draft, next_fire_time, expect_version, author)

    async def get_schedule(self, tenant: str, name: str) -> Schedule | None:
        return await self._schedules.get(tenant, name)

    async def get_schedule_by_id(self, tenant: str, schedule_id: UUID) -> Schedule | None:
        return await self._schedules.by_id(tenant, schedule_id)

    async def list_schedules(self, wanted: ScheduleFilter, limit: int, after_name: str | None = None) -> list[Schedule]:
        return await self._schedules.by_name(wanted, limit, after_name)

    async def pause_schedule(self, tenant: str, name: str, note: str | None, author: str | None = None) -> Schedule | None:
        return await self._schedules.pause(tenant, name, note, author)

    async def resume_schedule(
        self, tenant: str, name: str, next_fire_time: Micros | None, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        return await self._schedules.resume(tenant, name, next_fire_time, author, expect_version)

    async def remove_schedule(
        self, tenant: str, name: str, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        return await self._schedules.remove(tenant, name, author, expect_version)

    async def list_versions(self, tenant: str, name: str, limit: int, before: int | None = None) -> list[ScheduleVersion]:
        return await self._schedules.versions(tenant, name, limit, before)

    async def due_schedules(self, segments: Sequence[int], until: Micros, limit: int) -> list[Schedule]:
        return await self._schedules.due(segments, until, limit)

    async def fire(self, firings: Sequence[Firing]) -> int:
        return await self._schedules.fire(firings)

    # -- nodes and leases ---------------------------------------------------------------------------------------------
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        return await self._nodes.join(draft, ttl)

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        return await self._nodes.beat(node, ttl)

    async def leave(self, node: NodeId) -> None:
        await self._nodes.leave(node)

    async def nodes(self, living: bool = False) -> list[Node]:
        return await self._nodes.known(living)

    async def bury(self, me: NodeId) -> list[NodeId]:
        return await self._nodes.bury(me)

    async def orphans(self, limit: int) -> list[Claimed]:
        return await self._nodes.orphans(limit)

    async def take_leases(self, node: NodeId, names: Sequence[str]) -> list[str]:
        return await self._nodes.take(node, names)

    async def drop_leases(self, node: NodeId, names: Sequence[str]) -> None:
        await self._nodes.drop(node, names)

    async def leases(self) -> list[Lease]:
        return await self._nodes.leases()

    # -- documents and events of the edges ----------------------------------------------------------------------------
    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None:
        return await self._records.get(kind, tenant, key)

    async def put_record(
        self, kind: str, tenant: str, key: str, value: bytes, expect: int | None = None, expires_at: Micros | None = None
    ) -> int:
        return await self._records.put(Record(kind, tenant, key, value, 0, expires_at), expect)

    async def delete_record(self, kind: str, tenant: str, key: str) -> bool:
        return await self._records.delete(kind, tenant, key)

    async def list_records(self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None) -> list[Record]:
        return await self._records.page(kind, tenant, limit, after)

    async def add_events(self, events: Sequence[bytes]) -> None:
        await self._events.add(events)

    async def list_events(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        return await self._events.page(after, limit)

    async def last_event(self) -> int:
        return await self._events.last()

    # -- upkeep and hints ---------------------------------------------------------------------------------------------
    async def prune(self, before: Micros, targets: Mapping[str, Micros] | None = None) -> int:
        """Whole days at a time where it can, and so an estimate."""
        return await upkeep.prune(self._lines, before, targets or {})

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        return self._bell.subscribe(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        """Does not wait until it is told: whoever settles jobs has more to do."""
        self._bell.ring(hints, whenever=True)

"""The PostgreSQL store: each verb goes to the component that implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from duetime.errors import StoreError, StoreUnavailable
from duetime.model.hint import Hint
from duetime.model.identity import StoreIdentity
from duetime.model.instant import Micros
from duetime.store import (
    CallerTransaction,
    Capabilities,
    ClaimRequest,
    Due,
    Migration,
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
        self._nodes = PostgresNodes(self._connections)
        self._sessions = TaskSessions(address, self._notifier)
        self._home: Micros | None = None
        # Each verb of the contract is that of a component.
        self.set_queue, self.queues = self._queues.set, self._queues.known
        external = ExternalJobs(self._connections, self._settlements)
        jobs = PostgresJobs(self._connections, self._notifier, self._queues, external)
        self.add_jobs, self.get_job, self.list_jobs, self.count_jobs = (
            jobs.add,
            jobs.get,
            jobs.page,
            jobs.count,
        )
        self.list_attempts, self.cancel_job = jobs.attempts, jobs.cancel
        self.reschedule_job, self.resolve_dead_job = jobs.reschedule, jobs.resolve_dead
        self.add_unique = UniqueJobs(self._connections, self._notifier, jobs, self._queues).add
        self.claim, self.settle = self._claims.claim, self._settlements.settle
        checkpoints = PostgresCheckpoints(self._connections)
        self.save_progress, self.take_once = checkpoints.save, checkpoints.take_once
        self.begin_transaction = self._sessions.begin
        schedules = PostgresSchedules(self._connections, self._notifier)
        self.write_schedule, self.get_schedule = schedules.write, schedules.get
        self.list_schedules, self.list_versions = schedules.page, schedules.versions
        self.fire = schedules.fire
        self.join, self.beat, self.leave = self._nodes.join, self._nodes.beat, self._nodes.leave
        self.nodes, self.expire_nodes = self._nodes.known, self._nodes.expire
        self.running_jobs = self._nodes.running_jobs
        records = PostgresRecords(self._connections)
        self.get_record, self.put_record, self.list_records = records.get, records.put, records.page
        events = PostgresEventLog(self._connections, self._notifier)
        self.add_events, self.list_events = events.add, events.page
        rows = PostgresRows(self._connections)
        self.read_rows, self.write_rows = rows.read, rows.write
        self.subscribe = self._notifier.subscribe

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

    # -- what no component does alone
    async def due_jobs(self, request: ClaimRequest) -> Due:
        if request.segments:
            return await self._claims.due_jobs(request)
        return Due([], await self._claims.next_due(request))

    def within(self, connection: Any) -> CallerTransaction:
        return caller_transaction(connection, self._home, self._queues)

    async def prune(self, old: Micros | Sequence[UUID], targets: Mapping[str, Micros] | None = None) -> int:
        """Whole days at a time where possible, and so an estimate."""
        if not isinstance(old, int):
            return await retention.forget(self._connections, old)
        return await retention.prune(self._connections, old, targets or {})

    async def hint(self, hints: Sequence[Hint]) -> None:
        """Does not wait until the hints are sent: a settling worker has more to do."""
        self._notifier.notify(hints, also_late=True)

"""The memory store's face: each verb takes the one lock, changes everything or nothing, and tells its listeners afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from threading import RLock
from typing import Any, NoReturn
from uuid import UUID

from duetime.clock import wall_micros
from duetime.errors import ConfigError, Conflict, InvalidInput
from duetime.model.attempt import Attempt
from duetime.model.hint import CancelHint, EventHint, Hint
from duetime.model.instant import Micros
from duetime.model.job import CancelReply, Claimed, Job, JobDraft, JobFilter, State
from duetime.model.lease import Beat, Lease, Node, NodeDraft, NodeId
from duetime.model.limit import Queue
from duetime.model.schedule import Firing, Schedule, ScheduleDraft, ScheduleFilter, ScheduleVersion
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, Rule
from duetime.store import Capabilities, ClaimRequest, MarkReply, Migration, Note, QueueCount, Record, Unsubscribe
from duetime.stores.handover import cancellation
from duetime.stores.memory import noting
from duetime.stores.memory.admitting import admit
from duetime.stores.memory.claiming import Claiming, next_due
from duetime.stores.memory.events import Events
from duetime.stores.memory.hinting import LOOK_AT_EVERYTHING, cursor_hints, job_hints
from duetime.stores.memory.jobs import Jobs
from duetime.stores.memory.nodes import Nodes
from duetime.stores.memory.records import Records
from duetime.stores.memory.row import Row, claimed_of, job_of
from duetime.stores.memory.schedules import Schedules
from duetime.stores.memory.selecting import position, selects
from duetime.stores.memory.settling import was_written, write

SCHEMA_VERSION = 1


class MemoryStore:
    """No verb awaits anything, so each is atomic for its event loop; the lock makes it so for other threads, too."""

    capabilities = Capabilities(durable=False, shared=False, hints=True, owner_gone=False, embedded=True)

    def __init__(self, clock: Callable[[], Micros] | None = None) -> None:
        self._clock = clock or wall_micros
        self._lock = RLock()
        self._listeners: list[Callable[[Hint], None]] = []
        self._jobs = Jobs()
        self._nodes = Nodes(self._jobs)
        self._schedules = Schedules(self._jobs)
        self._records = Records()
        self._events = Events()

    # -- life ---------------------------------------------------------------------------------------------------------
    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """The data stays as long as the object."""

    async def migrate(self) -> Migration:
        return Migration(SCHEMA_VERSION, SCHEMA_VERSION)

    def twin(self) -> MemoryStore:
        return self

    async def time(self) -> Micros:
        return self._clock()

    # -- jobs: what callers ask for -----------------------------------------------------------------------------------
    async def add_jobs(self, drafts: Sequence[JobDraft], again: bool = False) -> list[UUID]:
        with self._lock:
            now = self._clock()
            ids = [self._jobs.add(draft, now) for draft in drafts]
        self._tell(job_hints(drafts))
        return ids

    async def add_unique(self, draft: JobDraft, rule: Rule, again: bool = False) -> Admission:
        with self._lock:
            admission = admit(self._jobs, draft, rule, self._clock())
            moved = self._jobs.live.get(admission.id)
        self._tell([] if moved is None or admission.conflict == "skipped" else job_hints([moved.draft]))
        return admission

    def guest(self, connection: Any) -> NoReturn:
        raise InvalidInput("connection", "jobs in memory have no database whose transaction they could join: leave it out in tests")

    async def get_job(self, tenant: str, job_id: UUID) -> Job | None:
        with self._lock:
            row = self._jobs.find(tenant, job_id)
            return None if row is None else job_of(row)

    async def list_jobs(self, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None = None) -> list[Job]:
        with self._lock:
            found = (row for row in self._jobs.every() if selects(wanted, row) and (before is None or position(row) < before))
            return [job_of(row) for row in nlargest(limit, found, key=position)]

    async def count_matching(self, wanted: JobFilter, most: int) -> int:
        with self._lock:
            return sum(1 for _ in islice((row for row in self._jobs.every() if selects(wanted, row)), most))

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        with self._lock:
            return list(self._jobs.attempts.get(job_id, ()))

    async def count_jobs(self) -> list[QueueCount]:
        with self._lock:
            now = self._clock()
            by_queue: dict[str, list[Row]] = defaultdict(list)
            for row in self._jobs.live.values():
                by_queue[row.draft.queue].append(row)
        return [_count(queue, rows, now) for queue, rows in sorted(by_queue.items())]

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        with self._lock:
            row = self._jobs.find(tenant, job_id)
            if row is None:
                return CancelReply.MISSING
            if row.state.final:
                return CancelReply.FINAL
            if row.node is None:
                freed = self._cancel(row, reason)
                reply, hints = CancelReply.CANCELLED, job_hints(waiting.draft for waiting in freed)
            else:
                row.cancel_requested = True
                reply, hints = CancelReply.REQUESTED, [CancelHint(row.node, job_id)]
        self._tell(hints)
        return reply

    async def change_job(self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None) -> bool:
        with self._lock:
            row = self._jobs.find(tenant, job_id)
            if row is None or row.state is not State.PENDING:
                return False
            draft = row.draft
            self._jobs.move(row, draft.due_at if due_at is None else due_at, draft.priority if priority is None else priority)
        self._tell(job_hints([row.draft]))
        return True

    async def revive_job(self, tenant: str, job_id: UUID, draft: JobDraft) -> bool:
        with self._lock:
            row = self._undisposed(tenant, job_id)
            if row is None:
                return False
            holder = self._jobs.holder(draft.tenant, draft.unique_key)
            if holder is not None:
                raise Conflict(f"job {holder} holds the unique key {draft.unique_key!r}: wait for it to finish, or cancel it")
            row.disposition = "retried"
            self._jobs.add(draft, self._clock())
        self._tell(job_hints([draft]))
        return True

    async def discard_job(self, tenant: str, job_id: UUID) -> bool:
        with self._lock:
            row = self._undisposed(tenant, job_id)
            if row is not None:
                row.disposition = "discarded"
            return row is not None

    # -- jobs: what workers ask for -----------------------------------------------------------------------------------
    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        with self._lock:
            now = self._clock()
            if not self._nodes.may_claim(request.node, now):
                return []
            claiming = Claiming(self._jobs, request, now)
            claiming.run()
            claimed = [claimed_of(row) for row in claiming.taken]
        self._tell(claiming.hints)
        return claimed

    async def next_due(self, request: ClaimRequest) -> Micros | None:
        with self._lock:
            return next_due(self._jobs, request, self._clock())

    async def settle(self, settlements: Sequence[Settlement]) -> list[UUID]:
        refused: list[UUID] = []
        freed: list[Row] = []
        with self._lock:
            for decision in settlements:
                row = self._jobs.running(decision.id, decision.attempt)
                if row is not None:
                    freed += write(self._jobs, row, decision)
                elif not was_written(self._jobs, decision):
                    refused.append(decision.id)
        self._tell(job_hints(row.draft for row in freed))
        return refused

    async def extend(self, job_id: UUID, attempt: int, due_at: Micros) -> bool:
        with self._lock:
            row = self._jobs.outside(job_id, attempt)
            if row is not None:
                self._jobs.extend(row, due_at)
            return row is not None

    async def overdue(self, limit: int) -> list[Claimed]:
        with self._lock:
            return [claimed_of(row) for row in self._jobs.overdue(self._clock())[:limit]]

    async def held(self, node: NodeId) -> list[Claimed]:
        with self._lock:
            return [claimed_of(row) for row in self._jobs.of_node(node)]

    async def begin(self, job_id: UUID, attempt: int) -> bool:
        with self._lock:
            row = self._jobs.running(job_id, attempt)
            if row is not None:
                row.begun = True
            return row is not None

    async def save(self, notes: Sequence[Note]) -> list[UUID]:
        with self._lock:
            return noting.save(self._jobs, notes)

    async def mark(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
        with self._lock:
            return noting.mark(self._jobs, job_id, attempt, key, nonce)

    async def transact(self) -> NoReturn:
        raise ConfigError("the memory store has no transactions: a task that needs ctx.connection needs sqlite:/// or postgresql://")

    async def await_job(self, job_id: UUID) -> bool:
        with self._lock:
            row = self._jobs.live.get(job_id)
            if row is not None:
                row.awaited = True
            return row is not None

    async def queues(self) -> list[Queue]:
        with self._lock:
            return [queue for _, queue in sorted(self._jobs.quotas.queues.items())]

    async def set_queue(self, queue: Queue) -> None:
        with self._lock:
            self._jobs.quotas.queues[queue.name] = queue
        self._tell([LOOK_AT_EVERYTHING])

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def put_schedule(
        self, draft: ScheduleDraft, next_fire_time: Micros | None, expect_version: int | None, author: str | None = None
    ) -> Schedule | None:
        with self._lock:
            schedule = self._schedules.put(draft, next_fire_time, expect_version, author, self._clock())
        if schedule is not None:
            self._tell(cursor_hints(schedule))
        return schedule

    async def get_schedule(self, tenant: str, name: str) -> Schedule | None:
        with self._lock:
            return self._schedules.get(tenant, name)

    async def get_schedule_by_id(self, tenant: str, schedule_id: UUID) -> Schedule | None:
        with self._lock:
            return self._schedules.by_id(tenant, schedule_id)

    async def list_schedules(self, wanted: ScheduleFilter, limit: int, after_name: str | None = None) -> list[Schedule]:
        with self._lock:
            return self._schedules.by_name(wanted, limit, after_name)

    async def pause_schedule(self, tenant: str, name: str, note: str | None, author: str | None = None) -> Schedule | None:
        with self._lock:
            schedule = self._schedules.pause(tenant, name, note, author, self._clock())
        self._tell(())
        return schedule

    async def resume_schedule(
        self, tenant: str, name: str, next_fire_time: Micros | None, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        with self._lock:
            schedule = self._schedules.get(tenant, name)
            if schedule is None or not schedule.paused or expect_version not in (None, schedule.version):
                return schedule
            schedule = self._schedules.resume(schedule, next_fire_time, author, self._clock())
        self._tell(cursor_hints(schedule))
        return schedule

    async def remove_schedule(
        self, tenant: str, name: str, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        with self._lock:
            schedule = self._schedules.remove(tenant, name, author, expect_version, self._clock())
        self._tell(())
        return schedule

    async def list_versions(self, tenant: str, name: str, limit: int, before: int | None = None) -> list[ScheduleVersion]:
        with self._lock:
            return self._schedules.versions(tenant, name, limit, before)

    async def due_schedules(self, segments: Sequence[int], until: Micros, limit: int) -> list[Schedule]:
        with self._lock:
            return self._schedules.due(segments, until, limit)

    async def fire(self, firings: Sequence[Firing]) -> int:
        with self._lock:
            now = self._clock()
            applied = [drafts for firing in firings if (drafts := self._schedules.fire(firing, now)) is not None]
        self._tell(job_hints(draft for drafts in applied for draft in drafts))
        return len(applied)

    # -- nodes and leases ---------------------------------------------------------------------------------------------
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

    async def nodes(self, living: bool = False) -> list[Node]:
        with self._lock:
            return self._nodes.known(living)

    async def bury(self, me: NodeId) -> list[NodeId]:
        with self._lock:
            return self._nodes.bury(me, self._clock())

    async def orphans(self, limit: int) -> list[Claimed]:
        with self._lock:
            return [claimed_of(row) for row in islice(self._nodes.orphans(), limit)]

    async def take_leases(self, node: NodeId, names: Sequence[str]) -> list[str]:
        with self._lock:
            return self._nodes.take(node, names)

    async def drop_leases(self, node: NodeId, names: Sequence[str]) -> None:
        with self._lock:
            self._nodes.drop(node, names)

    async def leases(self) -> list[Lease]:
        with self._lock:
            return self._nodes.leases()

    # -- documents and events of the edges ----------------------------------------------------------------------------
    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None:
        with self._lock:
            return self._records.get(kind, tenant, key, self._clock())

    async def put_record(
        self, kind: str, tenant: str, key: str, value: bytes, expect: int | None = None, expires_at: Micros | None = None
    ) -> int:
        with self._lock:
            return self._records.put(Record(kind, tenant, key, value, 0, expires_at), expect, self._clock())

    async def delete_record(self, kind: str, tenant: str, key: str) -> bool:
        with self._lock:
            return self._records.delete(kind, tenant, key, self._clock())

    async def list_records(self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None) -> list[Record]:
        with self._lock:
            return self._records.page(kind, tenant, limit, after, self._clock())

    async def add_events(self, events: Sequence[bytes]) -> None:
        with self._lock:
            self._events.add(events, self._clock())
            last = self._events.last
        self._tell([EventHint(last)] if events else ())

    async def list_events(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        with self._lock:
            return self._events.page(after, limit)

    async def last_event(self) -> int:
        return self._events.last

    # -- upkeep and hints ---------------------------------------------------------------------------------------------
    async def prune(self, before: Micros, targets: Mapping[str, Micros] | None = None) -> int:
        with self._lock:
            self._nodes.forget(before)
            now = self._clock()
            self._jobs.quotas.forget_idle(now)
            self._schedules.forget_versions(before)
            self._records.forget(now)
            self._events.forget(now)
            return self._jobs.prune(before, targets or {})

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        with self._lock:
            self._listeners = [*self._listeners, listener]
        return lambda: self._unsubscribe(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        self._tell(hints)

    def _unsubscribe(self, listener: Callable[[Hint], None]) -> None:
        with self._lock:
            if listener in self._listeners:
                at = self._listeners.index(listener)
                self._listeners = self._listeners[:at] + self._listeners[at + 1 :]

    def _tell(self, hints: Iterable[Hint]) -> None:
        """These, and what the jobs themselves have to tell. Outside the lock: a listener may call the store."""
        with self._lock:
            news, self._jobs.news = self._jobs.news, []
        for hint in (*hints, *news):
            for listener in self._listeners:
                listener(hint)

    def _cancel(self, row: Row, reason: str) -> list[Row]:
        """One that waits, or that was handed over. Answers the jobs that waited for it to finish."""
        if row.state is not State.RUNNING:
            return self._jobs.finish(row, State.CANCELLED, self._clock(), reason)
        draft = row.draft
        return write(self._jobs, row, cancellation(draft.id, row.attempt, draft.due_at, row.failures, row.losses, self._clock(), reason))

    def _undisposed(self, tenant: str, job_id: UUID) -> Row | None:
        row = self._jobs.find(tenant, job_id)
        return row if row is not None and row.state is State.DEAD and row.disposition is None else None


def _count(queue: str, rows: list[Row], now: Micros) -> QueueCount:
    pending = [row for row in rows if row.state is not State.RUNNING]
    return QueueCount(queue, len(pending), sum(row.draft.due_at <= now for row in pending), len(rows) - len(pending))

"""The way from one process to the store: slow, lossy, and ambiguous about what was committed. Implements the whole contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, NoReturn, Protocol, TypeVar
from uuid import UUID

from duetime.errors import InvalidInput, StoreUnavailable
from duetime.model.attempt import Attempt
from duetime.model.hint import Hint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import CancelReply, Claimed, Job, JobDraft, JobFilter
from duetime.model.lease import Beat, Lease, Node, NodeDraft, NodeId
from duetime.model.limit import Queue
from duetime.model.schedule import Firing, Schedule, ScheduleDraft, ScheduleFilter, ScheduleVersion
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, Rule
from duetime.store import Capabilities, ClaimRequest, MarkReply, Migration, Note, QueueCount, Record, Store, Unsubscribe
from duetime.testing.simulation.effects import RemoteTransaction, Write
from duetime.testing.simulation.loop import NOBODY, SimulationLoop
from duetime.testing.simulation.processes import Host

Answer = TypeVar("Answer")
Verb = Callable[..., Coroutine[Any, Any, Answer]]
OF_ATTEMPTS = ("commit", "mark", "save")  # said by a task while it runs
GIVE_UP_AFTER = 0.8  # seconds until a caller whose request or reply was lost stops waiting
AFTER_ALL = 0.5  # of the requests that seem lost: the store carries them out, but maybe so much later that nobody counts on it any more
MUCH_LATER = 4.0  # seconds
NEVER_LATE = ("save",)  # nothing in a job's row tells a checkpoint that comes late from a newer one of the same attempt


class CommittingStore(Store, Protocol):
    async def commit(self, settlement: Settlement, writes: tuple[Write, ...]) -> bool:
        """The end of a transaction in which a task wrote: its writes and the settlement, or neither."""
        ...


class Backend(Protocol):
    """The store as the network reaches it."""

    crashes: int  # of the store so far
    down: bool

    @property
    def store(self) -> CommittingStore: ...

    def now(self) -> Micros: ...

    def execute(self, verb: Verb[Any], host: Host | None, *arguments: Any) -> Any:
        """One transaction, checked."""
        ...


class Wire:
    """Carries calls of one host. Requests and replies travel by themselves: a request reaches the store although its sender died."""

    def __init__(self, loop: SimulationLoop, chance: Random, backend: Backend, host: Host) -> None:
        self._loop = loop
        self._random = chance.random
        self._backend = backend
        self._host = host

    def call(self, verb: Verb[Answer], *arguments: Any) -> asyncio.Future[Answer]:
        reply: asyncio.Future[Answer] = self._loop.create_future()
        weather, draw = self._host.weather, self._random()
        if self._host.process.dead:
            return reply
        if draw < weather.lost_requests:
            self._host.disturb(self._backend.now())
            self._later(GIVE_UP_AFTER * self._random(), self._fail, reply, "the request was lost")
            if self._random() < AFTER_ALL and verb.__name__ not in NEVER_LATE:
                self._later(MUCH_LATER * self._random(), self._arrive, verb, arguments, reply, True, self._backend.crashes)
            return reply
        lost = draw < weather.lost_requests + weather.lost_replies
        delay = self._delay() if verb.__name__ not in OF_ATTEMPTS else self._delay_of_attempts()
        self._later(delay, self._arrive, verb, arguments, reply, lost, self._backend.crashes)
        return reply

    def _arrive(self, verb: Verb[Answer], arguments: tuple[Any, ...], reply: asyncio.Future[Answer], lost: bool, crashes: int) -> None:
        if self._backend.down or crashes != self._backend.crashes:
            self._later(self._delay(), self._fail, reply, "the store is down")
            return
        answer = self._backend.execute(verb, self._host, *arguments)
        if lost:
            self._host.disturb(self._backend.now())
            self._later(GIVE_UP_AFTER * self._random(), self._fail, reply, "the reply was lost")
        else:
            self._later(self._delay(), self._deliver, reply, answer, crashes)

    def _deliver(self, reply: asyncio.Future[Answer], answer: Answer, crashes: int) -> None:
        if crashes != self._backend.crashes:
            self._fail(reply, "the connection broke")
        elif not reply.done():
            reply.set_result(answer)

    def _fail(self, reply: asyncio.Future[Answer], why: str) -> None:
        self._host.disturb(self._backend.now())
        if not reply.done():
            reply.set_exception(StoreUnavailable(f"simulated: {why}"))
            reply.exception()  # its caller may have died: nobody need see it

    def _delay(self) -> float:
        weather = self._host.weather
        if weather.stalls and self._random() < weather.stalls:
            self._host.disturb(self._backend.now() + int(2 * SECOND * weather.stall))
            return weather.stall * self._random()
        return weather.latency * self._random()

    def _delay_of_attempts(self) -> float:
        tardy = self._host.weather.tardy
        return 0.5 + 2 * self._random() if tardy and self._random() < tardy else self._delay()

    def _later(self, delay: float, callback: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_later(delay, callback, *arguments, context=NOBODY)

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        def relay(hint: Hint) -> None:
            weather, draw = self._host.weather, self._random()
            if draw < weather.lost_hints or self._backend.down or self._host.gone:
                return
            for _ in range(2 if draw > 1 - weather.doubled_hints else 1):
                self._loop.call_later(self._delay(), listener, hint, context=self._host.process.context)

        unsubscribe = self._backend.store.subscribe(relay)
        self._host.unsubscribes.append(unsubscribe)
        return unsubscribe


class RemoteStore:
    """The store as one process sees it."""

    capabilities = Capabilities(durable=True, shared=True, hints=True, owner_gone=False, transactions=True)

    def __init__(self, wire: Wire, store: CommittingStore) -> None:
        self._wire = wire
        self._store = store

    async def open(self) -> None:
        await self._wire.call(self._store.open)

    async def close(self) -> None:
        await self._wire.call(self._store.close)

    async def migrate(self) -> Migration:
        return await self._wire.call(self._store.migrate)

    def twin(self) -> Store:
        return self

    async def time(self) -> Micros:
        return await self._wire.call(self._store.time)

    async def add_jobs(self, drafts: Sequence[JobDraft], again: bool = False) -> list[UUID]:
        return await self._wire.call(self._store.add_jobs, drafts, again)

    async def add_unique(self, draft: JobDraft, rule: Rule, again: bool = False) -> Admission:
        return await self._wire.call(self._store.add_unique, draft, rule, again)

    def guest(self, connection: Any) -> NoReturn:
        raise InvalidInput("connection", "a simulated store has no connections that somebody else could own")

    async def get_job(self, tenant: str, job_id: UUID) -> Job | None:
        return await self._wire.call(self._store.get_job, tenant, job_id)

    async def list_jobs(self, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None = None) -> list[Job]:
        return await self._wire.call(self._store.list_jobs, wanted, limit, before)

    async def count_matching(self, wanted: JobFilter, most: int) -> int:
        return await self._wire.call(self._store.count_matching, wanted, most)

    async def list_attempts(self, job_id: UUID) -> list[Attempt]:
        return await self._wire.call(self._store.list_attempts, job_id)

    async def count_jobs(self) -> list[QueueCount]:
        return await self._wire.call(self._store.count_jobs)

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        return await self._wire.call(self._store.cancel_job, tenant, job_id, reason)

    async def change_job(self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None) -> bool:
        return await self._wire.call(self._store.change_job, tenant, job_id, due_at, priority)

    async def revive_job(self, tenant: str, job_id: UUID, draft: JobDraft) -> bool:
        return await self._wire.call(self._store.revive_job, tenant, job_id, draft)

    async def discard_job(self, tenant: str, job_id: UUID) -> bool:
        return await self._wire.call(self._store.discard_job, tenant, job_id)

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        return await self._wire.call(self._store.claim, request)

    async def next_due(self, request: ClaimRequest) -> Micros | None:
        return await self._wire.call(self._store.next_due, request)

    async def settle(self, settlements: Sequence[Settlement]) -> list[UUID]:
        return await self._wire.call(self._store.settle, settlements)

    async def extend(self, job_id: UUID, attempt: int, due_at: Micros) -> bool:
        return await self._wire.call(self._store.extend, job_id, attempt, due_at)

    async def overdue(self, limit: int) -> list[Claimed]:
        return await self._wire.call(self._store.overdue, limit)

    async def held(self, node: NodeId) -> list[Claimed]:
        return await self._wire.call(self._store.held, node)

    async def begin(self, job_id: UUID, attempt: int) -> bool:
        return await self._wire.call(self._store.begin, job_id, attempt)

    async def save(self, notes: Sequence[Note]) -> list[UUID]:
        return await self._wire.call(self._store.save, notes)

    async def mark(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
        return await self._wire.call(self._store.mark, job_id, attempt, key, nonce)

    async def transact(self) -> RemoteTransaction:
        await self._wire.call(self._store.time)  # it begins where the store is, or not at all
        return RemoteTransaction(lambda settlement, writes: self._wire.call(self._store.commit, settlement, writes))

    async def await_job(self, job_id: UUID) -> bool:
        return await self._wire.call(self._store.await_job, job_id)

    async def queues(self) -> list[Queue]:
        return await self._wire.call(self._store.queues)

    async def set_queue(self, queue: Queue) -> None:
        await self._wire.call(self._store.set_queue, queue)

    async def put_schedule(
        self, draft: ScheduleDraft, next_fire_time: Micros | None, expect_version: int | None, author: str | None = None
    ) -> Schedule | None:
        return await self._wire.call(self._store.put_schedule, draft, next_fire_time, expect_version, author)

    async def get_schedule(self, tenant: str, name: str) -> Schedule | None:
        return await self._wire.call(self._store.get_schedule, tenant, name)

    async def get_schedule_by_id(self, tenant: str, schedule_id: UUID) -> Schedule | None:
        return await self._wire.call(self._store.get_schedule_by_id, tenant, schedule_id)

    async def list_schedules(self, wanted: ScheduleFilter, limit: int, after_name: str | None = None) -> list[Schedule]:
        return await self._wire.call(self._store.list_schedules, wanted, limit, after_name)

    async def pause_schedule(self, tenant: str, name: str, note: str | None, author: str | None = None) -> Schedule | None:
        return await self._wire.call(self._store.pause_schedule, tenant, name, note, author)

    async def resume_schedule(
        self, tenant: str, name: str, next_fire_time: Micros | None, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        return await self._wire.call(self._store.resume_schedule, tenant, name, next_fire_time, author, expect_version)

    async def remove_schedule(
        self, tenant: str, name: str, author: str | None = None, expect_version: int | None = None
    ) -> Schedule | None:
        return await self._wire.call(self._store.remove_schedule, tenant, name, author, expect_version)

    async def list_versions(self, tenant: str, name: str, limit: int, before: int | None = None) -> list[ScheduleVersion]:
        return await self._wire.call(self._store.list_versions, tenant, name, limit, before)

    async def due_schedules(self, segments: Sequence[int], until: Micros, limit: int) -> list[Schedule]:
        return await self._wire.call(self._store.due_schedules, segments, until, limit)

    async def fire(self, firings: Sequence[Firing]) -> int:
        return await self._wire.call(self._store.fire, firings)

    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        return await self._wire.call(self._store.join, draft, ttl)

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        return await self._wire.call(self._store.beat, node, ttl)

    async def leave(self, node: NodeId) -> None:
        await self._wire.call(self._store.leave, node)

    async def nodes(self, living: bool = False) -> list[Node]:
        return await self._wire.call(self._store.nodes, living)

    async def bury(self, me: NodeId) -> list[NodeId]:
        return await self._wire.call(self._store.bury, me)

    async def orphans(self, limit: int) -> list[Claimed]:
        return await self._wire.call(self._store.orphans, limit)

    async def take_leases(self, node: NodeId, names: Sequence[str]) -> list[str]:
        return await self._wire.call(self._store.take_leases, node, names)

    async def drop_leases(self, node: NodeId, names: Sequence[str]) -> None:
        await self._wire.call(self._store.drop_leases, node, names)

    async def leases(self) -> list[Lease]:
        return await self._wire.call(self._store.leases)

    async def get_record(self, kind: str, tenant: str, key: str) -> Record | None:
        return await self._wire.call(self._store.get_record, kind, tenant, key)

    async def put_record(
        self, kind: str, tenant: str, key: str, value: bytes, expect: int | None = None, expires_at: Micros | None = None
    ) -> int:
        return await self._wire.call(self._store.put_record, kind, tenant, key, value, expect, expires_at)

    async def delete_record(self, kind: str, tenant: str, key: str) -> bool:
        return await self._wire.call(self._store.delete_record, kind, tenant, key)

    async def list_records(self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None) -> list[Record]:
        return await self._wire.call(self._store.list_records, kind, tenant, limit, after)

    async def add_events(self, events: Sequence[bytes]) -> None:
        await self._wire.call(self._store.add_events, events)

    async def list_events(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        return await self._wire.call(self._store.list_events, after, limit)

    async def last_event(self) -> int:
        return await self._wire.call(self._store.last_event)

    async def prune(self, before: Micros, targets: Mapping[str, Micros] | None = None) -> int:
        return await self._wire.call(self._store.prune, before, targets)

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        return self._wire.subscribe(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        await self._wire.call(self._store.hint, hints)

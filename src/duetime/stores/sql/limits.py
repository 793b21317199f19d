"""Permits in the file: reads how much is in use, makes jobs wait and claimable again, and passes permits on
to the next jobs."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from duetime.model.hint import JobHint
from duetime.model.lease import NodeId
from duetime.model.limit import UNLIMITED, TaskLimit
from duetime.model.permits import Candidate, KeyUse, QueueUse, Usage, promotable, schedule_permit
from duetime.store import Successors
from duetime.stores.sql.rows import rate_of, uuid_of
from duetime.stores.sql.session import Row, SqlSession, SqlTransaction

MAX_SWEPT = 500  # names of permits that one sweep looks at


class StoppedJob(NamedTuple):
    """A running job that a settlement ends or sends back."""

    id: bytes
    target: str
    limit_key: str | None
    permit: bytes | None
    schedule_id: bytes | None
    queue: str
    priority: int
    tenant: str
    overlap: str | None
    awaited: int
    attempt: int


class WaitingJob(NamedTuple):
    """A job that waits for a permit."""

    id: bytes
    queue: str
    target: str
    limit_key: str | None
    overlap: str | None


async def set_limits(transaction: SqlTransaction, limits: Iterable[TaskLimit]) -> None:
    rows = [(limit.target, limit.max_running, *(limit.rate or (None, None))) for limit in limits]
    await transaction.change_many("set_limits", rows)


async def usage(
    transaction: SqlTransaction, candidates: Sequence[Candidate], queues: Mapping[str, QueueUse]
) -> Usage:
    """What is in use among the names that the candidates need."""
    limited = [job for job in candidates if job.limit_key is not None]
    alone = [
        (job.id, job.schedule_id)
        for job in candidates
        if job.overlap is not None and job.schedule_id is not None
    ]
    started = await _started(transaction, {schedule_id for _, schedule_id in alone})
    return Usage(
        transaction.now,
        await _limits(transaction, {job.target for job in limited}),
        await _key_uses(transaction, {str(job.limit_key) for job in limited}),
        {job_id: rival for job_id, schedule_id in alone for rival in started[schedule_id] if rival != job_id},
        queues,
    )


async def start(
    transaction: SqlTransaction, node: NodeId, permits: Mapping[bytes, bytes | None]
) -> list[Row]:
    """Jobs by id, each with its permit, become running. Returns rows for `claimed_of`, in the same order."""
    rows = [(bytearray(job_id), node, transaction.now, permit) for job_id, permit in permits.items()]
    started = {row[0]: row for row in await transaction.all_many("start", rows)}
    return [started[job_id] for job_id in permits]


async def promote(transaction: SqlTransaction, name: str, count: int = 1) -> list[JobHint]:
    """The best jobs that wait for this permit become claimable again. Returns hints for them."""
    return [JobHint(*row) for row in await transaction.all("promote", (name, count))]


async def let_next_ask(
    transaction: SqlTransaction, limit_key: str | None, schedule_id: bytes | None = None
) -> None:
    """A pending job is gone or was rescheduled: if it held a permit or was the one to ask for it, another job
    asks now."""
    names = [limit_key, None if schedule_id is None else schedule_permit(uuid_of(schedule_id))]
    for name in names:
        transaction.tell(await promote(transaction, name) if name is not None else [])


class PermitSweep:
    """Makes jobs claimable whose permit is free: the settlement or claim that should have done it may be
    lost."""

    def __init__(self) -> None:
        self._after = ""

    async def run(self, transaction: SqlTransaction) -> int:
        """Looks at the next names. Returns how many jobs became claimable."""
        targets: dict[str, str] = dict(await transaction.all("waited_for", (self._after, MAX_SWEPT)))
        self._after = max(targets) if len(targets) == MAX_SWEPT else ""
        schedules = {name: UUID(name[1:]) for name in targets if name.startswith("/")}
        started = await _started(transaction, schedules.values())
        limits = await _limits(transaction, set(targets.values()))
        uses = await _key_uses(transaction, targets.keys() - schedules.keys())
        free = {name: int(schedule_id not in started) for name, schedule_id in schedules.items()}
        free |= {
            name: promotable(limits.get(targets[name], UNLIMITED), use, transaction.now)
            for name, use in uses.items()
        }
        return sum([len(await promote(transaction, name, count)) for name, count in free.items() if count])


class PassOn:
    """Passes the permits of jobs that stop running to the jobs that wait for them. Called after the
    settlements were written."""

    def __init__(
        self,
        transaction: SqlTransaction,
        successors: Successors | None,
        restricted_queues: Collection[str],
    ) -> None:
        self._transaction = transaction
        self._successors = successors
        self._queues = frozenset(successors.queues if successors else ()) - frozenset(restricted_queues)
        self._targets = frozenset(successors.targets if successors else ())
        self._room = 0
        self._limits: dict[str, TaskLimit] = {}
        self._start: dict[bytes, bytes | None] = {}
        self._promote: list[Row] = []

    async def run(self, ended: Sequence[StoppedJob], final: Collection[bytes]) -> list[Row]:
        """Returns rows of the jobs that start, for `claimed_of`."""
        node = self._successors.node if self._successors else None
        if self._successors and await self._transaction.value("is_alive", (node, self._transaction.now)):
            self._room = self._successors.room
        await self._pass_limits([job for job in ended if job.permit is not None])
        await self._pass_schedules(
            {job.schedule_id for job in ended if job.schedule_id is not None and job.id in final}
        )
        self._transaction.tell(
            [JobHint(*row) for row in await self._transaction.all_many("promote_jobs", self._promote)]
        )
        return (
            await start(self._transaction, self._successors.node, self._start)
            if self._successors and self._start
            else []
        )

    async def _pass_limits(self, ended: Sequence[StoppedJob]) -> None:
        self._limits = (
            await _limits(self._transaction, {*self._targets, *(job.target for job in ended)})
            if ended
            else {}
        )
        by_key: defaultdict[str, dict[bytes, list[StoppedJob]]] = defaultdict(dict)
        for job in ended:
            if self._limits.get(job.target, UNLIMITED).max_running is not None:
                by_key[str(job.limit_key)].setdefault(job.permit or b"", []).append(job)
        uses = await _key_uses(self._transaction, by_key)
        wanted = [
            len(permits) + sum(map(self._wanted, chain(*permits.values()))) for permits in by_key.values()
        ]
        for key, waiting in (await self._waiting(by_key, max(wanted, default=0))).items():
            await self._pass_key(key, by_key[key], uses[key].permits, waiting)

    async def _pass_key(
        self, key: str, permits: Mapping[bytes, list[StoppedJob]], in_use: int, waiting: deque[WaitingJob]
    ) -> None:
        for permit, jobs in permits.items():
            limit = self._limits[jobs[0].target].max_running or 0
            shared = in_use >= limit and await self._transaction.value("is_permit_in_use", (key, permit))
            if not waiting or in_use >= limit + bool(shared):
                continue  # no job waits, or the limit was lowered
            count = 0
            wanted = sum(map(self._wanted, jobs))
            while count < wanted and waiting and waiting[0].overlap is None and self._may_start(waiting[0]):
                self._start[waiting.popleft().id] = permit
                count += 1
            if count:
                in_use += not shared
            elif waiting and not shared:
                self._promote.append((waiting.popleft().id,))

    async def _pass_schedules(self, schedules: Collection[bytes]) -> None:
        started = await _started(self._transaction, map(uuid_of, schedules))
        names = [
            schedule_permit(schedule_id)
            for schedule_id in map(uuid_of, schedules)
            if schedule_id not in started
        ]
        for [job] in (await self._waiting(names, 1)).values():
            if job.limit_key is None and self._may_start(job):
                self._start[job.id] = None
            else:
                self._promote.append((job.id,))

    def _wanted(self, job: StoppedJob) -> int:
        return self._successors.wanted.get(uuid_of(job.id), 1) if self._successors else 0

    async def _waiting(self, names: Collection[str], count: int) -> dict[str, deque[WaitingJob]]:
        """By permit: the best jobs that wait for it."""
        found: defaultdict[str, deque[WaitingJob]] = defaultdict(deque)
        for name, *job in await self._transaction.all_each("best_waiting", [(name, count) for name in names]):
            found[name].append(WaitingJob._make(job))
        return found

    def _may_start(self, job: WaitingJob) -> bool:
        """Whether the settling node takes the job over, which then needs nothing but the permit that became
        free."""
        room = self._room - len(self._start)
        rated = self._limits.get(job.target, UNLIMITED).rate is not None
        return room > 0 and not rated and job.queue in self._queues and job.target in self._targets


async def _limits(session: SqlSession, targets: Collection[str]) -> dict[str, TaskLimit]:
    rows = await session.all("limits_of", (session.listed(targets),)) if targets else []
    return {
        target: TaskLimit(target, max_running, rate_of(count, period))
        for target, max_running, count, period in rows
    }


async def _key_uses(session: SqlSession, names: Iterable[str]) -> dict[str, KeyUse]:
    return {
        name: KeyUse(*use) for name, *use in await session.all_many("key_use", [(name,) for name in names])
    }


async def _started(session: SqlSession, schedules: Iterable[UUID]) -> defaultdict[UUID, list[UUID]]:
    """By schedule: its jobs that have started and not finished."""
    found: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for schedule_id, job_id in await session.all_many(
        "started_of_schedules", [(schedule_id.bytes,) for schedule_id in schedules]
    ):
        found[uuid_of(schedule_id)].append(uuid_of(job_id))
    return found

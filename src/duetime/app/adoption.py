"""A restored or copied store starts nothing until a person has decided about the time since: which fires and
jobs would be late, may have run already, or run a second time. Then the store is adopted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Literal

from duetime.errors import Conflict, StoreNotAdopted, StoreUnavailable
from duetime.model.codec import decode, encode
from duetime.model.identity import Stamp, StoreIdentity, why_not_adopted
from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_TENANT, Job, JobFilter, State
from duetime.model.schedule import Firing, Missed, MissedPolicy, Schedule, plan_fires
from duetime.model.stored import QueueRow, Record, RowKind, row_key
from duetime.store import Store

PAGE = 1_000
CLIENT_TIMEOUT = 0.5  # seconds
MAX_COUNTED = 10_000  # missed fires of one schedule
MAX_LISTED = 1_000  # jobs kept as examples
STAMP = ("store", DEFAULT_TENANT, "identity")  # a record of its own in every store
REASON = "cancelled when the restored store was adopted"
REMEDY = (
    "it starts nothing until `duetime adopt` decides what happens to the work since then; "
    "`duetime adopt --plan` shows it"
)
Choice = Literal["run", "cancel"]


async def refuse_unadopted(store: Store, joins: bool = False) -> None:
    """For every process that opens the store. The first one writes down which store it is. A client does not
    insist, because its caller may hold the lock of a SQLite file; a node that joins does."""
    found = await store.identity()
    stamp = await read_stamp(store)
    if stamp is None:
        if found != StoreIdentity():
            with nullcontext() if joins else suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(None if joins else CLIENT_TIMEOUT):
                    await _write(store, found, expect=0)
        return
    if (reason := await _why(store, stamp, found)) is not None:
        raise StoreNotAdopted(f"{reason}: {REMEDY}")
    if joins and stamp.server != found.server:  # after a failover
        await _write(store, found)


async def why_refused(store: Store) -> str | None:
    """Only reads."""
    stamp = await read_stamp(store)
    return None if stamp is None else await _why(store, stamp, await store.identity())


async def fence(store: Store, why: str) -> None:
    """From now on no process can open the store until it is adopted."""
    known = await read_stamp(store)
    stamp = Stamp("", "", 0 if known is None else known.at, why)
    await store.put_record(*STAMP, encode(asdict(stamp)))


async def read_stamp(store: Store) -> Stamp | None:
    record = await store.get_record(*STAMP)
    return None if record is None else stamp_of(record)


def stamp_of(record: Record) -> Stamp:
    value = decode(record.value)
    return Stamp(value["data"], value["server"], value["at"], value.get("fence"))


async def _write(store: Store, found: StoreIdentity, expect: int | None = None) -> None:
    stamp = Stamp(found.data, found.server, await store.time())
    await store.put_record(*STAMP, encode(asdict(stamp)), expect)


async def _why(store: Store, stamp: Stamp, found: StoreIdentity) -> str | None:
    has_times = found.seen_at is not None or found.max_silence is not None
    if stamp.fence is not None or not (has_times or stamp.server != found.server):
        return why_not_adopted(stamp, found, stamp.at, stamp.at)  # most opens: no other query
    return why_not_adopted(stamp, found, await _alive_at(store, stamp), await store.time())


async def _alive_at(store: Store, stamp: Stamp) -> Micros:
    """Until when the rows show that nodes worked."""
    return max([stamp.at, *(node.lease_until for node in await store.nodes())])


@dataclass(frozen=True, slots=True)
class MissedFires:
    tenant: str
    schedule: str
    policy: MissedPolicy  # its own
    fires: int  # counted up to MAX_COUNTED
    first: Micros
    last: Micros


@dataclass(frozen=True, slots=True)
class AdoptionPlan:
    reason: str | None  # None: the store is adopted already
    as_of: Micros  # the last sign of life in the rows
    now: Micros
    missed: list[MissedFires]
    late: int  # pending jobs that fell due since: they may have run
    running: int  # jobs that ran: they may have ended
    examples: list[Job]  # of both

    @property
    def fires(self) -> int:
        return sum(one.fires for one in self.missed)


class Adoption:
    """On a store that is open and that no app uses."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def plan(self) -> AdoptionPlan:
        now, stamp = await self._store.time(), await read_stamp(self._store)
        as_of = now if stamp is None else min(now, await _alive_at(self._store, stamp))
        missed = [
            found async for schedule in self._behind(now) if (found := _missed(schedule, now)) is not None
        ]
        late = running = 0
        examples: list[Job] = []
        async for job in self._started_or_late(now):
            late += job.state is State.PENDING
            running += job.state is State.RUNNING
            if len(examples) < MAX_LISTED:
                examples.append(job)
        return AdoptionPlan(await why_refused(self._store), as_of, now, missed, late, running, examples)

    async def adopt(self, missed: MissedPolicy | None, jobs: Choice | None) -> None:
        """Do what was decided, then let nodes start. After an interruption it can be repeated. None: there
        is nothing to decide about."""
        now = await self._store.time()
        if jobs == "cancel":
            for job in [job async for job in self._started_or_late(now)]:
                await self._store.cancel_job(job.tenant, job.id, REASON)
        if missed is not None:
            async for schedule in self._behind(now):
                for firing in _firings(schedule, Missed(missed), now):
                    await self._fire(firing, schedule, now)
        await _write(self._store, await self._store.identity())

    async def _fire(self, firing: Firing, schedule: Schedule, now: Micros) -> None:
        """Those that run are due now: then the schedule's own policy does not skip them once more."""
        fires = tuple(
            fire if fire.skip_reason is not None else fire._replace(due_at=now) for fire in firing.fires
        )
        if not await self._store.fire([replace(firing, fires=fires)]):
            raise Conflict(
                f"schedule {schedule.draft.name!r} changed meanwhile: a process uses the store; stop it, "
                "then run `duetime adopt` again"
            )

    async def _behind(self, now: Micros) -> AsyncIterator[Schedule]:
        """Schedules of all tenants whose next fire is in the past."""
        after = None
        while page := await self._store.read_rows(RowKind.SCHEDULES, after, PAGE):
            for row in page:
                assert isinstance(row, Schedule)
                if not row.paused and row.next_fire_time is not None and row.next_fire_time < now:
                    yield row
            after = row_key(page[-1])

    async def _started_or_late(self, now: Micros) -> AsyncIterator[Job]:
        for tenant in await self._tenants():
            for state, due_before in ((State.RUNNING, None), (State.PENDING, now)):
                wanted = JobFilter(tenant, frozenset({state}), due_before=due_before)
                before = None
                while page := await self._store.list_jobs(wanted, PAGE, before):
                    for job in page:
                        yield job
                    before = page[-1].id

    async def _tenants(self) -> list[str]:
        found: set[str] = set()
        after = None
        while page := await self._store.read_rows(RowKind.QUEUES, after, PAGE):
            found.update(tenant for row in page if isinstance(row, QueueRow) for tenant in row.tenants)
            after = row_key(page[-1])
        return sorted(found)


def _firings(schedule: Schedule, missed: Missed, now: Micros) -> Iterator[Firing]:
    """All steps that bring the cursor behind `now`. The policy decides about every moment before now: another
    node may have called the last seconds, too."""
    at = replace(schedule, draft=replace(schedule.draft, missed=missed))
    while at.next_fire_time is not None and at.next_fire_time < now:
        firing = plan_fires(at, now, now, late_after=0)
        yield firing
        last = firing.fires[-1].fire_time if firing.fires else at.last_fire_time
        at = replace(at, next_fire_time=firing.next_fire_time, last_fire_time=last, runs=firing.runs)


def _missed(schedule: Schedule, now: Micros) -> MissedFires | None:
    moments = list(islice(_moments(schedule, now), MAX_COUNTED))
    draft = schedule.draft
    return (
        MissedFires(draft.tenant, draft.name, draft.missed.policy, len(moments), moments[0], moments[-1])
        if moments
        else None
    )


def _moments(schedule: Schedule, now: Micros) -> Iterator[Micros]:
    for firing in _firings(schedule, Missed("all"), now):
        yield from (fire.fire_time for fire in firing.fires)

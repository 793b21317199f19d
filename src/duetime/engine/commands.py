"""Commands: what callers ask for, validated and written. When one of these returns, the work is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.errors import JobFinished, JobNotFound, NeverFires, ScheduleExists, ScheduleNotFound, VersionConflict
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, Micros
from duetime.model.job import CancelReply, Job, JobDraft
from duetime.model.schedule import Schedule, ScheduleDraft, first_fire, plan_fires
from duetime.store import Store

STALE_CLOCK = 10 * SECOND
MOST_IN_A_GROUP = 5_000

Entry = tuple[Sequence[JobDraft], asyncio.Future[list[UUID]]]


class Submitter:
    """Group commit: one write is under way at a time, and what arrives meanwhile goes together in the next. A lone caller never waits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[Entry] = []
        self._writing = False
        self._flushing: asyncio.Task[None] | None = None

    async def submit(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        """All of `drafts` or none; one id for each."""
        if self._writing:
            place: asyncio.Future[list[UUID]] = asyncio.get_running_loop().create_future()
            self._waiting.append((drafts, place))
            return await place
        self._writing = True
        try:
            return await self._store.add_jobs(drafts)
        finally:
            self._next_group()

    def _next_group(self) -> None:
        self._writing = bool(self._waiting)
        if self._waiting:
            self._flushing = asyncio.get_running_loop().create_task(self._flush(self._take_group()))

    def _take_group(self) -> list[Entry]:
        size = count = 0
        while count < len(self._waiting) and (count == 0 or size + len(self._waiting[count][0]) <= MOST_IN_A_GROUP):
            size += len(self._waiting[count][0])
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _flush(self, group: list[Entry]) -> None:
        try:
            stored = iter(await self._store.add_jobs([draft for drafts, _ in group for draft in drafts]))
        except Exception as problem:
            for _, place in group:
                if not place.done():
                    place.set_exception(problem)
        else:
            for drafts, place in group:
                answer = list(islice(stored, len(drafts)))
                if not place.done():
                    place.set_result(answer)
        finally:
            # Those just served come first: whoever submits again at once joins the next group instead of writing alone.
            asyncio.get_running_loop().call_soon(self._next_group)


class Commands:
    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._submitter = Submitter(store)

    async def now(self) -> Micros:
        """Store time; a client that has been quiet for a while asks the store again."""
        if self._clock.sample_age > STALE_CLOCK:
            await self._clock.follow(self._store.time)
        return self._clock.now()

    async def submit(self, draft: JobDraft) -> UUID:
        """The id of the stored job; another's id when the unique key is taken."""
        failpoint("commands.before_add")
        [job_id] = await self._submitter.submit([draft])
        failpoint("commands.after_add")
        return job_id

    async def submit_many(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return await self._submitter.submit(drafts) if drafts else []

    async def get_job(self, tenant: str, job_id: UUID) -> Job:
        job = await self._store.get_job(tenant, job_id)
        if job is None:
            raise JobNotFound(f"there is no job {job_id}: it never was, or its history has been pruned")
        return job

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        reply = await self._store.cancel_job(tenant, job_id, reason)
        if reply is CancelReply.MISSING:
            raise JobNotFound(f"there is no job {job_id}")
        if reply is CancelReply.FINAL:
            raise JobFinished(f"job {job_id} has finished already: there is nothing to cancel")
        return reply

    async def retry_job(self, tenant: str, job_id: UUID) -> UUID:
        """A dead letter runs again as a new job linked to it; what is final stays final."""
        job = await self.get_job(tenant, job_id)
        now = await self.now()
        draft = JobDraft(
            self._ids.new(job.fire_time), job.tenant, job.schedule_id, job.schedule, job.fire_time, now, job.queue, job.priority,
            job.overlap, job.target, job.target_spec, job.payload, job.policies, job.owner, job.labels, job.unique_key, retry_of=job.id,
        )  # fmt: skip
        if not await self._store.revive_job(tenant, job_id, draft):
            raise JobFinished(f"job {job_id} is {job.state} and no open dead letter: only those can be retried")
        return draft.id

    async def discard_job(self, tenant: str, job_id: UUID) -> None:
        if not await self._store.discard_job(tenant, job_id):
            job = await self.get_job(tenant, job_id)
            raise JobFinished(f"job {job_id} is {job.state} and no open dead letter: only those can be discarded")

    async def put_schedule(self, draft: ScheduleDraft, replacing: bool, expect_version: int | None = None) -> Schedule:
        """Create or replace. Putting what is there already changes nothing: every process may declare its schedules as it starts."""
        cursor = first_fire(draft, await self.now())
        known = await self._store.get_schedule(draft.tenant, draft.name) if replacing or cursor is None else None
        if known is not None and expect_version is None and _same(known.draft, draft):
            return known
        if cursor is None:
            raise NeverFires("when", f"schedule {draft.name!r} would never fire: all its instants are past, or outside start_at and end_at")
        if known is not None:
            await self._catch_up(known)
        stored = await self._store.put_schedule(draft, cursor, expect_version if expect_version is not None else None if replacing else 0)
        return stored if stored is not None else await self._explain_refusal(draft, expect_version)

    async def _explain_refusal(self, draft: ScheduleDraft, expect_version: int | None) -> Schedule:
        if expect_version is not None:
            raise VersionConflict(f"schedule {draft.name!r} is not at version {expect_version} any more: read it again and repeat the edit")
        known = await self._store.get_schedule(draft.tenant, draft.name)
        if known is not None and _same(known.draft, draft):
            return known
        raise ScheduleExists(f"there is another schedule {draft.name!r} already: choose another name, or pass replace=True to change it")

    async def get_schedule(self, tenant: str, name: str) -> Schedule:
        return _found(await self._store.get_schedule(tenant, name), name)

    async def pause_schedule(self, tenant: str, name: str, note: str | None) -> Schedule:
        await self._catch_up(await self.get_schedule(tenant, name))
        return _found(await self._store.pause_schedule(tenant, name, note), name)

    async def resume_schedule(self, tenant: str, name: str) -> Schedule:
        schedule = await self.get_schedule(tenant, name)
        cursor = first_fire(schedule.draft, await self.now(), schedule.runs)
        return _found(await self._store.resume_schedule(tenant, name, cursor), name)

    async def remove_schedule(self, tenant: str, name: str) -> Schedule:
        await self._catch_up(await self.get_schedule(tenant, name))
        return _found(await self._store.remove_schedule(tenant, name), name)

    async def _catch_up(self, schedule: Schedule) -> None:
        """Fires that fell due before a change belong to the schedule as it was, although no planner came round to them."""
        known: Schedule | None = schedule
        now = await self.now()
        while known is not None and not known.paused and known.next_fire_time is not None and known.next_fire_time <= now:
            await self._store.fire([plan_fires(known, now, now)])
            known = await self._store.get_schedule(known.draft.tenant, known.draft.name)

    async def trigger_schedule(self, tenant: str, name: str) -> UUID:
        """One job of the schedule now, beside its own fires."""
        schedule = await self.get_schedule(tenant, name)
        draft, now = schedule.draft, await self.now()
        job = JobDraft(
            self._ids.new(now), tenant, schedule.id, name, now, now, draft.queue, draft.priority, draft.overlap, draft.target,
            draft.target_spec, draft.payload, draft.policies, draft.owner, draft.labels, None, None,
        )  # fmt: skip
        return (await self._store.add_jobs([job]))[0]


def _same(stored: ScheduleDraft, wanted: ScheduleDraft) -> bool:
    return replace(stored, id=wanted.id) == wanted


def _found(schedule: Schedule | None, name: str) -> Schedule:
    if schedule is None:
        raise ScheduleNotFound(f"there is no schedule {name!r}: `duetime schedule list` shows those there are")
    return schedule

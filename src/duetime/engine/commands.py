"""Commands: what callers ask for, validated and written. When one of these returns, the work is durable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid5

from duetime.clock import Clock
from duetime.engine.drafts import NO_DEFAULTS, Defaults, revived_draft
from duetime.engine.failpoint import failpoint
from duetime.engine.planner import PORTION
from duetime.engine.submitter import Submitter
from duetime.errors import (
    Conflict,
    InvalidInput,
    JobFinished,
    JobNotFound,
    NeverFires,
    ScheduleExists,
    ScheduleNotFound,
    VersionConflict,
)
from duetime.invoker import TaskConnection
from duetime.model.attempt import error_text
from duetime.model.ids import Ids, fire_id
from duetime.model.instant import SECOND, Micros
from duetime.model.job import CancelReply, Job, JobDraft
from duetime.model.limit import Queue, Rate
from duetime.model.schedule import Firing, Schedule, ScheduleDraft, first_fire, plan_fires
from duetime.model.unique import Admission, Rule
from duetime.store import Store

STALE_CLOCK = 10 * SECOND


@dataclass(frozen=True, slots=True)
class Repeat:
    """A request that may come again: whoever carries it out, and however often, its jobs have these ids and this instant."""

    ids: Ids
    at: Micros
    again: bool  # somebody may have carried it out before


class Commands:
    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._submitter = Submitter(store)
        self._repeat: Repeat | None = None

    def repeating(self, repeat: Repeat) -> Commands:
        """These commands for one request that may come again."""
        twin = copy(self)
        twin._ids, twin._repeat = repeat.ids, repeat
        return twin

    @property
    def _again(self) -> bool:
        return self._repeat is not None and self._repeat.again

    async def moment(self) -> Micros:
        """The instant of new jobs: now, or when the request that is repeated first came."""
        return await self.now() if self._repeat is None else self._repeat.at

    async def now(self) -> Micros:
        """Store time; a client that has been quiet for a while asks the store again."""
        if self._clock.sample_age > STALE_CLOCK:
            await self._clock.follow(self._store.time)
        return self._clock.now()

    async def submit(self, draft: JobDraft) -> UUID:
        """The id of the stored job; another's id when the unique key is taken."""
        failpoint("commands.before_add")
        [job_id] = await self._add([draft])
        failpoint("commands.after_add")
        return job_id

    async def admit(self, draft: JobDraft, rule: Rule) -> Admission:
        """Store a job that is unique by a rule of its own."""
        failpoint("commands.before_add")
        admission = await self._store.add_unique(draft, rule, self._again)
        failpoint("commands.after_add")
        return admission

    async def submit_within(self, connection: Any, drafts: Sequence[JobDraft]) -> list[UUID]:
        """Store them in the caller's own transaction: durable when the caller commits. A connection without async is used right here,
        on the thread that owns it."""
        own = await connection if isinstance(connection, TaskConnection) else connection
        guest = self._store.guest(own)
        return guest.add_jobs_now(drafts) if guest.blocking else await guest.add_jobs(drafts)

    async def submit_many(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return await self._add(drafts) if drafts else []

    async def _add(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return await (self._store.add_jobs(drafts, again=True) if self._again else self._submitter.submit(drafts))

    async def submit_again(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        """Store those that never were: a draft whose job is there, or has finished, is left alone."""
        return await self._store.add_jobs(drafts, again=True)

    async def get_job(self, tenant: str, job_id: UUID) -> Job:
        job = await self._store.get_job(tenant, job_id)
        if job is None:
            raise JobNotFound(f"there is no job {job_id}: it never was, or its history has been pruned")
        return job

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        reply = await self._store.cancel_job(tenant, job_id, error_text(reason))
        if reply is CancelReply.MISSING:
            raise JobNotFound(f"there is no job {job_id}")
        if reply is CancelReply.FINAL:
            raise JobFinished(f"job {job_id} has finished already: there is nothing to cancel")
        return reply

    async def move_job(self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None) -> None:
        if due_at is None and priority is None:
            raise InvalidInput("at", "says nothing new: give at, delay or priority")
        if not await self._store.change_job(tenant, job_id, due_at, priority):
            job = await self.get_job(tenant, job_id)
            raise (JobFinished if job.state.final else Conflict)(f"job {job_id} is {job.state}: only a pending one can be moved")

    async def retry_job(
        self, tenant: str, job_id: UUID, payload: Any = None, defaults_of: Callable[[str], Awaitable[Defaults]] | None = None
    ) -> UUID:
        """A dead letter runs again as a new job linked to it; what is final stays final. A payload takes the place of its own."""
        job = await self.get_job(tenant, job_id)
        defaults = NO_DEFAULTS if defaults_of is None else await defaults_of(job.target)
        draft = revived_draft(self._ids.new(job.fire_time), job, payload, defaults, await self.moment())
        if self._again and await self._store.get_job(tenant, draft.id) is not None:
            return draft.id
        if not await self._store.revive_job(tenant, job_id, draft):
            raise JobFinished(f"{_no_open_letter(job)}, and only those can be retried")
        return draft.id

    async def discard_job(self, tenant: str, job_id: UUID) -> None:
        if not await self._store.discard_job(tenant, job_id):
            job = await self.get_job(tenant, job_id)
            raise JobFinished(f"{_no_open_letter(job)}, and only those can be discarded")

    # -- queues -------------------------------------------------------------------------------------------------------
    async def pause_queue(self, name: str, note: str | None) -> Queue:
        queue = await self._queue(name)
        since = queue.paused_at if queue.paused else await self.now()
        return await self._set_queue(replace(queue, paused=True, pause_note=note, paused_at=since))

    async def resume_queue(self, name: str) -> Queue:
        return await self._set_queue(replace(await self._queue(name), paused=False, pause_note=None, paused_at=None))

    async def limit_queue(self, name: str, most: int | None, rate: Rate | None) -> Queue:
        return await self._set_queue(replace(await self._queue(name), most=most, rate=rate))

    async def _queue(self, name: str) -> Queue:
        return next((queue for queue in await self._store.queues() if queue.name == name), Queue(name))

    async def _set_queue(self, queue: Queue) -> Queue:
        await self._store.set_queue(queue)
        return queue

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def put_schedule(
        self,
        draft: ScheduleDraft,
        replacing: bool,
        expect_version: int | None = None,
        declared: Callable[[ScheduleDraft], ScheduleDraft] = lambda draft: draft,
        author: str | None = None,
    ) -> Schedule:
        """Create or replace. Putting what is there already changes nothing: every process may declare its schedules as it starts.
        `declared` leaves of a draft what its caller said; what follows from the task may change without asking."""
        cursor = first_fire(draft, await self.now())
        known = await self._store.get_schedule(draft.tenant, draft.name) if replacing or cursor is None else None
        if known is not None and expect_version in (None, known.version) and same_draft(known.draft, draft):
            return known
        if cursor is None:
            raise never_fires(draft)
        if known is not None:
            await self._catch_up(known)
        expected = expect_version if expect_version is not None else None if replacing else 0
        stored = await self._store.put_schedule(draft, cursor, expected, author)
        if stored is not None:
            return stored
        if expect_version is None and known is None:
            known = await self._store.get_schedule(draft.tenant, draft.name)
            if known is not None and not same_draft(known.draft, draft) and same_draft(declared(known.draft), declared(draft)):
                return await self.put_schedule(draft, replacing=True, author=author)
        return await self._explain_refusal(draft, expect_version)

    async def _explain_refusal(self, draft: ScheduleDraft, expect_version: int | None) -> Schedule:
        if expect_version is not None:
            raise VersionConflict(f"schedule {draft.name!r} is not at version {expect_version} any more: read it again and repeat the edit")
        known = await self._store.get_schedule(draft.tenant, draft.name)
        if known is not None and same_draft(known.draft, draft):
            return known
        raise already_there(draft)

    async def get_schedule(self, tenant: str, name: str) -> Schedule:
        return _found(await self._store.get_schedule(tenant, name), name)

    async def pause_schedule(self, tenant: str, name: str, note: str | None, author: str | None = None) -> Schedule:
        schedule = await self.get_schedule(tenant, name)
        if schedule.paused and schedule.pause_note == note:
            return schedule
        await self._catch_up(schedule)
        return _found(await self._store.pause_schedule(tenant, name, note, author), name)

    async def resume_schedule(self, tenant: str, name: str, author: str | None = None) -> Schedule:
        schedule = await self.get_schedule(tenant, name)
        while True:
            cursor = first_fire(schedule.draft, await self.now(), schedule.runs)
            resumed = _found(await self._store.resume_schedule(tenant, name, cursor, author, schedule.version), name)
            if not resumed.paused:
                return resumed
            schedule = resumed  # edited meanwhile: its fires are others now

    async def remove_schedule(self, tenant: str, name: str, author: str | None = None, expect_version: int | None = None) -> Schedule:
        schedule = await self.get_schedule(tenant, name)
        if expect_version in (None, schedule.version):
            await self._catch_up(schedule)
            removed = await self._store.remove_schedule(tenant, name, author, expect_version)
            if removed is not None:
                return removed
            schedule = await self.get_schedule(tenant, name)
        raise VersionConflict(f"schedule {name!r} is at version {schedule.version}, not {expect_version}: read it again")

    async def _catch_up(self, schedule: Schedule) -> None:
        """Fires that fell due before a change belong to the schedule as it was, although no planner came round to them."""
        known: Schedule | None = schedule
        now = await self.now()
        while known is not None and not known.paused and known.next_fire_time is not None and known.next_fire_time <= now:
            await self._store.fire([plan_fires(known, now, now)])
            known = await self._store.get_schedule(known.draft.tenant, known.draft.name)

    async def catch_up(self, schedules: Sequence[Schedule]) -> None:
        """One step of it for many at once, before each is changed by itself: most have no further one to take."""
        now = await self.now()
        late = [one for one in schedules if not one.paused and one.next_fire_time is not None and one.next_fire_time <= now]
        part: list[Firing] = []
        for number, one in enumerate(late, 1):
            part.append(plan_fires(one, now, now))
            if number == len(late) or sum(len(firing.fires) for firing in part) >= PORTION:
                await self._store.fire(part)
                part = []

    async def trigger_schedule(self, tenant: str, name: str) -> UUID:
        """One job of the schedule now, beside its own fires."""
        schedule = await self.get_schedule(tenant, name)
        now = await self.moment()
        return (await self._store.add_jobs([_triggered(schedule, self._ids.new(now), now)], self._again))[0]

    async def trigger_schedules(self, schedules: Sequence[Schedule]) -> None:
        """One job of each, all or none. A request that comes again makes the same ones, whatever has become of the others meanwhile."""
        now = await self.moment()
        nonce = self._ids.new(now)
        jobs = [_triggered(schedule, fire_id(uuid5(nonce, str(schedule.id)), now), now) for schedule in schedules]
        if jobs:
            await self._store.add_jobs(jobs, self._again)


def already_there(draft: ScheduleDraft) -> ScheduleExists:
    return ScheduleExists(f"there is another schedule {draft.name!r} already: choose another name, or pass replace=True to change it")


def never_fires(draft: ScheduleDraft) -> NeverFires:
    return NeverFires("when", f"schedule {draft.name!r} would never fire: all its instants are past, or outside start_at and end_at")


def same_draft(stored: ScheduleDraft, wanted: ScheduleDraft) -> bool:
    return replace(stored, id=wanted.id) == wanted


def _no_open_letter(job: Job) -> str:
    became = job.state if job.disposition is None else f"{job.state} and was {job.disposition}"
    return f"job {job.id} is {became}: it is no open dead letter"


def _triggered(schedule: Schedule, job_id: UUID, now: Micros) -> JobDraft:
    draft = schedule.draft
    return JobDraft(
        job_id, draft.tenant, schedule.id, draft.name, now, now, draft.queue, draft.priority, draft.overlap, draft.target,
        draft.target_spec, draft.payload, draft.policies, draft.owner, draft.labels, None, None, draft.gate,
    )  # fmt: skip


def _found(schedule: Schedule | None, name: str) -> Schedule:
    if schedule is None:
        raise ScheduleNotFound(f"there is no schedule {name!r}: `duetime schedule list` shows those there are")
    return schedule

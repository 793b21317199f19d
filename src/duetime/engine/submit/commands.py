"""Commands: the writes of callers. A command is durable when it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid5

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.engine.group_commit import GroupCommit
from duetime.engine.plan.planner import PORTION
from duetime.engine.submit.build import NO_DEFAULTS, Defaults, retry_draft
from duetime.engine.submit.quota import QuotaCheck
from duetime.engine.submit.schedules import DECLARED
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
from duetime.model.ids import Ids, fire_id
from duetime.model.instant import SECOND, Micros
from duetime.model.job import RETRYABLE, CancelReply, Job, JobDraft, error_text
from duetime.model.limit import Queue, QueueFilter
from duetime.model.schedule import Firing, Schedule, ScheduleDraft, first_fire, plan_fires
from duetime.model.unique import Admission, Rule
from duetime.store import ScheduleState, Store

MAX_SAMPLE_AGE = 10 * SECOND  # of the store's clock


@dataclass(frozen=True, slots=True)
class Repeat:
    """A request that may be repeated. Every execution gives its jobs the same ids and the same instant."""

    ids: Ids
    at: Micros
    again: bool  # an earlier execution may have stored them


class Commands:
    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._time = store.time
        self._clock = clock
        self._ids = ids
        self._submitter: GroupCommit[JobDraft, UUID] = GroupCommit(store.add_jobs)
        self.quota = QuotaCheck(store, clock)
        self._repeat: Repeat | None = None
        self._again = False  # an earlier execution of a repeated request may have stored its jobs

    def repeating(self, repeat: Repeat) -> Commands:
        """The same commands for one request that may be repeated."""
        twin = copy(self)
        twin._ids, twin._repeat, twin._again = repeat.ids, repeat, repeat.again
        return twin

    def on(self, store: Store) -> Commands:
        """The same commands for the transaction of a caller. The clock stays that of the store itself."""
        view = copy(self)
        view._store = store
        return view

    async def moment(self) -> Micros:
        """The instant of new jobs: now, or the time of the first request if this one repeats it."""
        if self._repeat is not None:
            return self._repeat.at
        return await self.now() if self._clock.sample_age > MAX_SAMPLE_AGE else self._clock.now()

    async def now(self) -> Micros:
        """The store's time. Asks the store again if the last sample is old."""
        if self._clock.sample_age > MAX_SAMPLE_AGE:
            await self._clock.follow(self._time)
        return self._clock.now()

    async def submit(self, draft: JobDraft) -> UUID:
        """The id of the stored job, or of the job that already has its unique key."""
        return (await self.submit_many([draft]))[0]

    async def submit_many(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        """Store all of them or none."""
        if not drafts:
            return []
        failpoint("commands.before_add")
        ids = await (
            self._store.add_jobs(drafts, is_retry=True) if self._again else self._submitter.write(drafts)
        )
        failpoint("commands.after_add")
        return ids

    async def admit(self, draft: JobDraft, rule: Rule) -> Admission:
        """Store a job that has its own uniqueness rule."""
        failpoint("commands.before_add")
        admission = await self._store.add_unique(draft, rule, self._again)
        failpoint("commands.after_add")
        return admission

    async def submit_within(self, connection: Any, drafts: Sequence[JobDraft]) -> list[UUID]:
        """Store them in the caller's transaction: durable when the caller commits. A blocking connection is
        used on this thread, which owns it."""
        own = await connection if isinstance(connection, TaskConnection) else connection
        transaction = self._store.within(own)
        return (
            transaction.add_jobs_now(drafts) if transaction.blocking else await transaction.add_jobs(drafts)
        )

    async def submit_again(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        """Store the drafts whose ids were never stored; skip the others."""
        return await self._store.add_jobs(drafts, is_retry=True)

    async def get_job(self, tenant: str, job_id: UUID) -> Job:
        job = await self._store.get_job(tenant, job_id)
        if job is None:
            raise JobNotFound(f"job {job_id} not found: it never existed or has been pruned")
        return job

    async def cancel_job(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        reply = await self._store.cancel_job(tenant, job_id, error_text(reason))
        if reply is CancelReply.MISSING:
            raise JobNotFound(f"job {job_id} not found: it never existed or has been pruned")
        if reply is CancelReply.FINAL:
            raise JobFinished(f"job {job_id} has already finished and cannot be cancelled")
        return reply

    async def reschedule_job(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> None:
        if due_at is None and priority is None:
            raise InvalidInput("at", "nothing to change: give at, delay or priority")
        if not await self._store.reschedule_job(tenant, job_id, due_at, priority):
            job = await self.get_job(tenant, job_id)
            raise (JobFinished if job.state.final else Conflict)(
                f"job {job_id} is {job.state}: only pending jobs can be rescheduled"
                + ("; retry it to run it again as a new job" if job.state in RETRYABLE else "")
            )

    async def retry_job(
        self,
        tenant: str,
        job_id: UUID,
        payload: Any = None,
        defaults_of: Callable[[str], Awaitable[Defaults]] | None = None,
    ) -> UUID:
        """Run a dead letter or a skipped job again as a new job linked to it, with its payload unless another
        one is given. The old job stays final."""
        job = await self.get_job(tenant, job_id)
        defaults = NO_DEFAULTS if defaults_of is None else await defaults_of(job.target)
        draft = retry_draft(self._ids.new(job.fire_time), job, payload, defaults, await self.moment())
        if self._again and await self._store.get_job(tenant, draft.id) is not None:
            return draft.id
        if not await self._store.resolve_dead_job(tenant, job_id, draft):
            raise _not_open(job, "retried")
        return draft.id

    async def discard_job(self, tenant: str, job_id: UUID) -> None:
        if not await self._store.resolve_dead_job(tenant, job_id, None):
            job = await self.get_job(tenant, job_id)
            raise _not_open(job, "discarded")

    # -- queues ----------------------------------------------------------------------------------------------
    async def change_queue(self, name: str, change: Callable[[Queue], Queue]) -> Queue:
        """Store the changed settings of a queue; a queue that was never used has none yet."""
        [known] = await self._store.queues(wanted=QueueFilter(name=name)) or [Queue(name)]
        changed = change(known)
        await self._store.set_queue(changed)
        return changed

    # -- schedules
    async def put_schedule(
        self,
        draft: ScheduleDraft,
        replacing: bool,
        expect_version: int | None = None,
        declared: Callable[[ScheduleDraft], ScheduleDraft] = lambda draft: draft,
        author: str | None = None,
        paused: bool = False,
    ) -> Schedule:
        """Create or replace. Putting an identical schedule changes nothing, so every process may declare its
        schedules when it starts. `declared` reduces a draft to what the caller declared; values from the task
        may change without a conflict. A new schedule is created `paused` if the caller wants that."""
        cursor = first_fire(draft, await self.now())
        known = (
            await self._store.get_schedule(draft.tenant, draft.name) if replacing or cursor is None else None
        )
        if known is not None and expect_version in (None, known.version) and same_draft(known.draft, draft):
            return known
        if cursor is None:
            raise never_fires(draft)
        if known is not None:
            await self._catch_up(known)
        expected = expect_version if expect_version is not None else None if replacing else 0
        stored = await self._write(draft, cursor, expected, author, paused)
        if stored is not None:
            return stored
        if expect_version is None and known is None:
            known = await self._store.get_schedule(draft.tenant, draft.name)
            if (
                known is not None
                and not same_draft(known.draft, draft)
                and same_draft(declared(known.draft), declared(draft))
            ):
                return await self.put_schedule(draft, replacing=True, author=author)
        return await self._explain_refusal(draft, expect_version)

    async def _write(
        self, draft: ScheduleDraft, cursor: Micros, expected: int | None, author: str | None, new_paused: bool
    ) -> Schedule | None:
        """Create or replace; a paused schedule stays paused. With nothing expected, whatever is there is
        replaced."""
        while True:
            known = None if expected == 0 else await self._store.get_schedule(draft.tenant, draft.name)
            paused, note = (new_paused, None) if known is None else (known.paused, known.pause_note)
            version = expected if expected is not None else 0 if known is None else known.version
            state = ScheduleState(draft, cursor, paused, note)
            stored = await self._store.write_schedule(draft.tenant, draft.name, state, version, author)
            if stored is not None or expected is not None:
                return stored

    async def _explain_refusal(self, draft: ScheduleDraft, expect_version: int | None) -> Schedule:
        if expect_version is not None:
            raise VersionConflict(
                f"schedule {draft.name!r} is no longer at version {expect_version}: "
                "read it again and repeat the edit"
            )
        known = await self._store.get_schedule(draft.tenant, draft.name)
        if known is not None and same_draft(known.draft, draft):
            return known
        raise already_there(draft)

    async def get_schedule(self, tenant: str, name: str) -> Schedule:
        return _found(await self._store.get_schedule(tenant, name), name)

    async def pause_schedule(
        self, tenant: str, name: str, note: str | None, author: str | None = None
    ) -> Schedule:
        schedule = await self.get_schedule(tenant, name)
        if schedule.paused and schedule.pause_note == note:
            return schedule
        await self._catch_up(schedule)
        while True:
            state = ScheduleState(schedule.draft, schedule.next_fire_time, True, note)
            paused = await self._store.write_schedule(tenant, name, state, schedule.version, author)
            if paused is not None:
                return paused
            schedule = await self.get_schedule(tenant, name)  # edited in between

    async def resume_schedule(self, tenant: str, name: str, author: str | None = None) -> Schedule:
        schedule = await self.get_schedule(tenant, name)
        while schedule.paused:
            cursor = first_fire(schedule.draft, await self.now(), schedule.runs)
            resumed = await self._store.write_schedule(
                tenant, name, ScheduleState(schedule.draft, cursor), schedule.version, author
            )
            if resumed is not None:
                return resumed
            schedule = await self.get_schedule(tenant, name)  # edited in between: its fires have changed
        return schedule

    async def remove_schedule(
        self, tenant: str, name: str, author: str | None = None, expect_version: int | None = None
    ) -> Schedule:
        schedule = await self.get_schedule(tenant, name)
        if expect_version in (None, schedule.version):
            await self._catch_up(schedule)
            while expect_version in (None, schedule.version):
                removed = await self._store.write_schedule(tenant, name, None, schedule.version, author)
                if removed is not None:
                    await self._store.put_record(DECLARED, tenant, name, None)
                    return removed
                schedule = await self.get_schedule(tenant, name)
        raise VersionConflict(
            f"schedule {name!r} is at version {schedule.version}, not {expect_version}: read it again"
        )

    async def _catch_up(self, schedule: Schedule) -> None:
        """Plan the fires that fell due before a change: they belong to the schedule as it was."""
        known: Schedule | None = schedule
        now = await self.now()
        while (
            known is not None
            and not known.paused
            and known.next_fire_time is not None
            and known.next_fire_time <= now
        ):
            await self._store.fire([plan_fires(known, now, now)])
            known = await self._store.get_schedule(known.draft.tenant, known.draft.name)

    async def catch_up(self, schedules: Sequence[Schedule]) -> None:
        """One such step for many schedules together, before each is changed by itself. Most need no second
        step."""
        now = await self.now()
        late = [
            one
            for one in schedules
            if not one.paused and one.next_fire_time is not None and one.next_fire_time <= now
        ]
        batch: list[Firing] = []
        for number, one in enumerate(late, 1):
            batch.append(plan_fires(one, now, now))
            if number == len(late) or sum(len(firing.fires) for firing in batch) >= PORTION:
                await self._store.fire(batch)
                batch = []

    async def trigger_schedule(self, tenant: str, name: str) -> UUID:
        """One job of the schedule now, in addition to its fires."""
        schedule = await self.get_schedule(tenant, name)
        now = await self.moment()
        return (
            await self._store.add_jobs([scheduled_job(schedule, self._ids.new(now), now, now)], self._again)
        )[0]

    async def trigger_schedules(self, schedules: Sequence[Schedule]) -> None:
        """One job of each, all or none. A repeated request makes the same jobs."""
        now = await self.moment()
        nonce = self._ids.new(now)
        jobs = [
            scheduled_job(schedule, fire_id(uuid5(nonce, str(schedule.id)), now), now, now)
            for schedule in schedules
        ]
        if jobs:
            await self._store.add_jobs(jobs, self._again)


def already_there(draft: ScheduleDraft) -> ScheduleExists:
    return ScheduleExists(
        f"another schedule {draft.name!r} already exists",
        "choose another name, or edit that one; declarations in code decide with "
        'on_conflict="keep" or "replace"',
    )


def never_fires(draft: ScheduleDraft) -> NeverFires:
    return NeverFires(
        "when",
        f"schedule {draft.name!r} would never fire: its fire times are past, or outside start_at and end_at",
    )


def same_draft(stored: ScheduleDraft, wanted: ScheduleDraft) -> bool:
    return replace(stored, id=wanted.id) == wanted


def _not_open(job: Job, wanted: str) -> JobFinished:
    """Only dead letters, and to retry skipped jobs, that were neither retried nor discarded."""
    if job.disposition is not None:
        return JobFinished(f"job {job.id} was already {job.disposition}")
    kinds = "dead letters and skipped jobs" if wanted == "retried" else "dead letters"
    return JobFinished(f"job {job.id} is {job.state}: only {kinds} can be {wanted}")


def scheduled_job(schedule: Schedule, job_id: UUID, fire_time: Micros, due_at: Micros) -> JobDraft:
    """A job of a schedule that is not one of its fires."""
    draft = schedule.draft
    return JobDraft(
        job_id, draft.tenant, schedule.id, draft.name, fire_time, due_at, draft.queue, draft.priority,
        draft.overlap, draft.target, draft.target_spec, draft.payload, draft.policies, draft.owner,
        draft.labels, None, None, draft.limit_key,
    )  # fmt: skip


def _found(schedule: Schedule | None, name: str) -> Schedule:
    if schedule is None:
        raise ScheduleNotFound(f"schedule {name!r} not found: `duetime schedule list` shows all of them")
    return schedule

"""Bulk actions on many jobs or schedules, a bounded number a call. Failures of single items are listed and do
not stop the others.

A call goes through the rows in the order of their listing and returns where the next one continues. Each item
is changed by the same command as a single one, and an item that already is in the wanted state counts as
done. So a call whose reply was lost can be repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from duetime.app.context import AppContext
from duetime.app.listing import JobQuery, filter_of, find_schedule
from duetime.engine.submit.validate import check_choice, check_id, check_note
from duetime.errors import DuetimeError, InvalidInput, JobFinished, StoreError
from duetime.model.instant import SECOND, Micros
from duetime.model.job import FINAL, Job, JobFilter, State
from duetime.model.schedule import Schedule, ScheduleFilter

MAX_ITEMS = 1_000  # of one call, and of the ids in one
CALL_TIMEOUT = 2 * SECOND
CHUNK = 128  # items that are changed concurrently, so that a store can write them together
MAX_COUNTED = 100_000
PAGE = 200
LIVE = frozenset(State) - FINAL
Position = TypeVar("Position")
Item = TypeVar("Item")
Act = Callable[[Item], Awaitable[Any]]
Before = Callable[[Sequence[Item]], Awaitable[None]]  # runs once for a chunk, before its items


class JobAction(StrEnum):
    CANCEL = "cancel"
    RETRY = "retry"  # dead letters, each as a new job
    RUN = "run"  # what is pending and not due is due now
    DISCARD = "discard"  # dead letters


class ScheduleAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    TRIGGER = "trigger"
    REMOVE = "remove"


# The states an action applies to; jobs in others are not selected.
CONCERNED = {
    JobAction.CANCEL: LIVE,
    JobAction.RETRY: {State.DEAD},
    JobAction.RUN: {State.PENDING},
    JobAction.DISCARD: {State.DEAD},
}


class Failure(NamedTuple):
    id: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Bulk(Generic[Position]):
    """What one call did. `next` is where the next call goes on, a place in the listing or among the ids;
    None: that was all."""

    matched: int
    done: int = 0
    failed: tuple[Failure, ...] = ()
    next: Position | int | None = None
    at_least: bool = False  # of a dry run: the count stopped there


class Done(NamedTuple):
    done: int
    failed: list[Failure]
    seen: int  # before the time was up

    def bulk(self, next: Position | int | None) -> Bulk[Position]:
        return Bulk(self.seen, self.done, tuple(self.failed), next)


JobBulk = Bulk[UUID]
ScheduleBulk = Bulk[str]


@dataclass(frozen=True, slots=True)
class BulkActions:
    context: AppContext

    async def jobs(
        self,
        action: JobAction | str,
        wanted: JobQuery | Sequence[UUID | str],
        *,
        after: UUID | int | None = None,
        dry_run: bool = False,
        reason: str = "cancelled in bulk",
    ) -> JobBulk:
        """Cancel, retry, run or discard the jobs that a filter selects, or jobs by id. `after` is the `next`
        of the previous call."""
        store, tenant = self.context.store, self.context.tenant
        chosen, now = check_choice(action, JobAction, "action"), await self.context.now()
        act = self._job_act(chosen, reason, now)
        if not isinstance(wanted, JobQuery):
            ids = _some(wanted, after)
            verb = partial(self.context.commands.get_job, tenant) if dry_run else act
            did = await self._carry_out(ids, partial(_by_id, verb), str)
            if dry_run:
                return Bulk(did.done, at_least=did.seen < len(ids))
            return did.bulk(_next_id(ids, did.seen, after))
        selected = _concerned(filter_of(tenant, wanted), chosen, now)
        if dry_run:
            matched = await store.count_jobs(selected, MAX_COUNTED)
            return Bulk(matched, at_least=matched >= MAX_COUNTED)
        jobs = await store.list_jobs(selected, MAX_ITEMS + 1, after if isinstance(after, UUID) else None)
        did = await self._carry_out(jobs[:MAX_ITEMS], lambda job: act(job.id), lambda job: str(job.id))
        return did.bulk(jobs[did.seen - 1].id if did.seen < len(jobs) else None)

    async def schedules(
        self,
        action: ScheduleAction | str,
        wanted: ScheduleFilter | Sequence[str],
        *,
        after: str | int | None = None,
        dry_run: bool = False,
        note: str | None = None,
        author: str | None = None,
    ) -> ScheduleBulk:
        """Pause, resume, trigger or remove the schedules that a filter selects, or schedules by name or
        id."""
        chosen, note = check_choice(action, ScheduleAction, "action"), check_note(note)
        if not isinstance(wanted, ScheduleFilter):
            names = _some(wanted, after)
            found, missing = await self._find(names)
            if dry_run:
                return Bulk(len(found))
            did = await self._act_on(chosen, list(found.values()), note, author)
            seen = len(names) if did.seen == len(found) else list(found)[did.seen]
            failed = [failure for number, failure in missing.items() if number < seen]
            return Done(did.done, [*failed, *did.failed], did.seen + len(failed)).bulk(
                _next_id(names, seen, after)
            )
        selected = _of_pause(replace(wanted, tenant=self.context.tenant), chosen)
        if selected is None:
            return Bulk(0)
        if dry_run:
            return await self._count_schedules(selected)
        listed = await self.context.store.list_schedules(
            selected, MAX_ITEMS + 1, after if isinstance(after, str) else None
        )
        did = await self._act_on(chosen, listed[:MAX_ITEMS], note, author)
        return did.bulk(listed[did.seen - 1].draft.name if did.seen < len(listed) else None)

    # -- jobs
    # --------------------------------------------------------------------------------------------------------
    def _job_act(self, action: JobAction, reason: str, now: Micros) -> Act[UUID]:
        commands, tenant = self.context.commands, self.context.tenant
        match action:
            case JobAction.CANCEL:
                return self._unless(
                    lambda job: job.state is State.CANCELLED,
                    partial(commands.cancel_job, tenant, reason=reason),
                )
            case JobAction.RETRY:
                again = partial(commands.retry_job, tenant, defaults_of=self.context.defaults_of)
                return self._unless(lambda job: job.disposition == "retried", again)
            case JobAction.DISCARD:
                return self._unless(
                    lambda job: job.disposition == "discarded", partial(commands.discard_job, tenant)
                )
            case JobAction.RUN:
                return partial(self._run, now)

    def _unless(self, is_so: Callable[[Job], bool], verb: Act[UUID]) -> Act[UUID]:
        """The command; a job that is already in the wanted state is not a failure."""

        async def act(job_id: UUID) -> None:
            try:
                await verb(job_id)
            except JobFinished:
                if not is_so(await self.context.commands.get_job(self.context.tenant, job_id)):
                    raise

        return act

    async def _run(self, now: Micros, job_id: UUID) -> None:
        commands, tenant = self.context.commands, self.context.tenant
        job = await commands.get_job(tenant, job_id)
        if job.state.final or (job.state is State.PENDING and job.due_at > now):
            await commands.reschedule_job(tenant, job_id, now, None)

    # -- schedules
    async def _find(self, names: Sequence[str]) -> tuple[dict[int, Schedule], dict[int, Failure]]:
        """By position among the names; each schedule once."""
        found: dict[int, Schedule] = {}
        failed: dict[int, Failure] = {}
        known: set[UUID] = set()
        for at in range(0, len(names), CHUNK):
            answers = await _all(
                find_schedule(self.context.store, self.context.tenant, str(name))
                for name in names[at : at + CHUNK]
            )
            for number, answer in enumerate(answers, at):
                if not isinstance(answer, Schedule):
                    failed[number] = _failure(str(names[number]), answer)
                elif answer.id not in known:
                    known.add(answer.id)
                    found[number] = answer
        return found, failed

    async def _act_on(
        self, action: ScheduleAction, schedules: Sequence[Schedule], note: str | None, author: str | None
    ) -> Done:
        commands, tenant = self.context.commands, self.context.tenant
        before: Before[Schedule] | None = commands.catch_up
        match action:
            case ScheduleAction.TRIGGER:
                await commands.trigger_schedules(schedules)
                return Done(len(schedules), [], len(schedules))
            case ScheduleAction.PAUSE:
                verb: Act[str] = partial(commands.pause_schedule, tenant, note=note, author=author)
            case ScheduleAction.RESUME:
                verb, before = partial(commands.resume_schedule, tenant, author=author), None
            case ScheduleAction.REMOVE:
                verb = partial(commands.remove_schedule, tenant, author=author)
        return await self._carry_out(
            schedules, lambda one: verb(one.draft.name), lambda one: str(one.id), before
        )

    async def _count_schedules(self, selected: ScheduleFilter) -> ScheduleBulk:
        """Counts by reading, until the call times out."""
        deadline = self.context.clock.monotonic() + CALL_TIMEOUT
        matched, last = 0, None
        while page := await self.context.store.list_schedules(selected, PAGE, last):
            matched, last = matched + len(page), page[-1].draft.name
            if self.context.clock.monotonic() > deadline:
                return Bulk(matched, at_least=True)
        return Bulk(matched)

    # -- both
    # --------------------------------------------------------------------------------------------------------
    async def _carry_out(
        self,
        items: Sequence[Item],
        act: Act[Item],
        name: Callable[[Item], str],
        before: Before[Item] | None = None,
    ) -> Done:
        deadline = self.context.clock.monotonic() + CALL_TIMEOUT
        failed: list[Failure] = []
        seen = 0
        while seen < len(items) and (seen == 0 or self.context.clock.monotonic() < deadline):
            chunk = items[seen : seen + CHUNK]
            if before is not None:
                await before(chunk)
            answers = zip(chunk, await _all(act(item) for item in chunk), strict=True)
            failed += [
                _failure(name(item), answer) for item, answer in answers if isinstance(answer, BaseException)
            ]
            seen += len(chunk)
        return Done(seen - len(failed), failed, seen)


async def _by_id(act: Act[UUID], reference: UUID | str) -> None:
    await act(check_id(reference))


async def _all(works: Iterable[Awaitable[Any]]) -> list[Any]:
    """What each of them returns or raises."""
    return await asyncio.gather(*works, return_exceptions=True)


def _failure(name: str, problem: BaseException) -> Failure:
    """An unavailable store or a bug ends the call: it says nothing about the item, and the call can be
    repeated."""
    if isinstance(problem, StoreError) or not isinstance(problem, DuetimeError):
        raise problem
    return Failure(name, problem.code, problem.message)


def _concerned(selected: JobFilter, action: JobAction, now: Micros) -> JobFilter:
    states = frozenset(CONCERNED[action]) & (selected.states or frozenset(State))
    match action:
        case JobAction.RETRY | JobAction.DISCARD:
            return replace(selected, states=states, undisposed=bool(states))
        case JobAction.RUN:
            return replace(selected, states=states, due_after=max(now + 1, selected.due_after or 0))
        case JobAction.CANCEL:
            return replace(selected, states=states)


def _of_pause(selected: ScheduleFilter, action: ScheduleAction) -> ScheduleFilter | None:
    """None if every selected schedule already is in the wanted state."""
    wanted = {ScheduleAction.PAUSE: False, ScheduleAction.RESUME: True}.get(action)
    if wanted is None:
        return selected
    return None if selected.paused is (not wanted) else replace(selected, paused=wanted)


def _some(wanted: Sequence[Any], after: Any) -> Sequence[Any]:
    if isinstance(wanted, str) or not 1 <= len(wanted) <= MAX_ITEMS:
        raise InvalidInput("ids", f"must be a list of 1 to {MAX_ITEMS:,}")
    return wanted[after:] if isinstance(after, int) else wanted


def _next_id(rest: Sequence[Any], seen: int, after: Any) -> int | None:
    return (after if isinstance(after, int) else 0) + seen if seen < len(rest) else None

"""Previews: the next fires of a schedule, and what an edit would change before it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from duetime.app.context import AppContext
from duetime.app.listing import find_schedule
from duetime.app.schedules import edit_of
from duetime.app.search import search
from duetime.engine.submit.commands import never_fires, same_draft
from duetime.engine.submit.validate import check_count
from duetime.errors import InvalidInput
from duetime.model import duration, instant
from duetime.model.describe.text import coming
from duetime.model.describe.when import describe
from duetime.model.duration import Duration
from duetime.model.edit_plan import (
    HORIZON,
    MAX_FIRES,
    FireChanges,
    ScheduleEdit,
    UpcomingJobs,
    caught_up,
    compare_fires,
    created,
    edited,
    upcoming_fires,
)
from duetime.model.forecast import Preview, preview, surprises
from duetime.model.instant import Micros
from duetime.model.job import FINAL, Job, JobFilter, State
from duetime.model.schedule import FieldChange, Schedule, difference, first_fire, schedule_status
from duetime.model.when import When
from duetime.store import Store

MAX_PREVIEWED = 1_000
PAGE = 1_000
LIVE = frozenset(State) - FINAL


class Words(NamedTuple):
    before: str | None  # None: there is none of this name yet
    after: str


@dataclass(frozen=True, slots=True)
class PlannedFires:
    """Within the horizon; each in order."""

    kept: int
    added: tuple[datetime, ...]
    withdrawn: tuple[datetime, ...]
    moved: tuple[tuple[datetime, datetime], ...]


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """What an edit would change."""

    version: int | None  # the one it would be applied to; None: there is none yet
    diff: tuple[FieldChange, ...]
    words: Words
    fires: PlannedFires
    jobs_withdrawn: int  # planned and not started; those of kept fires are planned again
    warnings: tuple[str, ...]
    complete: bool  # False: there were too many fires to look at all of them within the horizon


@dataclass(frozen=True, slots=True)
class Previews:
    context: AppContext

    async def when(
        self,
        when: When,
        *,
        count: int = 10,
        after: datetime | None = None,
        start_at: datetime | None = None,
        end_at: datetime | None = None,
    ) -> Preview:
        """The next fires of a `when`, from `after` or from now on: in words, in local time, with the effect
        of clock changes."""
        since = await self._since(after)
        start, end = (
            None if one is None else instant.read(one, field)
            for one, field in ((start_at, "start_at"), (end_at, "end_at"))
        )
        return await search(preview, when, _checked(count), since, start, end)

    async def schedule(self, reference: str, *, count: int = 10, after: datetime | None = None) -> Preview:
        """The next fires of a stored schedule, within its start, end and max_runs, as if it were not
        paused."""
        schedule = await find_schedule(self.context.store, self.context.tenant, reference)
        draft, since = schedule.draft, await self._since(after)
        runs = schedule_status(schedule, await self.context.now()).runs
        left = (
            _checked(count) if draft.max_runs is None else min(_checked(count), max(0, draft.max_runs - runs))
        )
        return await search(preview, draft.when, left, since, draft.start_at, draft.end_at)

    async def edit(
        self, reference: str, changes: Mapping[str, Any], *, horizon: Duration = HORIZON
    ) -> SchedulePlan:
        """What an edit of a schedule with these changes would do: which fires would be added, withdrawn and
        moved, and how many planned jobs would be withdrawn. Nothing is changed."""
        known = await find_schedule(self.context.store, self.context.tenant, reference)
        return await self.plan(known, await edit_of(self.context, known, changes), horizon)

    async def plan(
        self, known: Schedule | None, edit: ScheduleEdit, horizon: Duration = HORIZON
    ) -> SchedulePlan:
        """The plan of an edit; `known` is None for a new schedule."""
        span = duration.positive(horizon, "horizon")
        now = await self.context.now()
        ahead, all_seen = (
            (UpcomingJobs(), True) if known is None else await _ahead(self.context.store, known, now)
        )
        found = await search(_planned, known, edit, ahead, now, now + span, all_seen)
        draft = edit.draft
        warning = await self.context.task_warning(draft.target, draft.target_spec)
        if warning is None or (known is not None and known.draft.target == draft.target):
            return found
        return replace(found, warnings=(*found.warnings, warning))

    async def _since(self, after: datetime | None) -> Micros:
        return await self.context.now() if after is None else instant.read(after, "after")


def _checked(count: int) -> int:
    if check_count(count, "count") > MAX_PREVIEWED:
        raise InvalidInput("count", f"{count} is out of range: use 1 to {MAX_PREVIEWED:,}")
    return count


async def _ahead(store: Store, known: Schedule, now: Micros) -> tuple[UpcomingJobs, bool]:
    """The jobs of the schedule with a future fire time, and whether all of them were read."""
    wanted = JobFilter(known.draft.tenant, LIVE, schedule=known.draft.name, fire_after=now + 1)
    rows: list[Job] = []
    before: UUID | None = None
    while len(rows) < MAX_FIRES and (page := await store.list_jobs(wanted, PAGE, before)):
        rows += [job for job in page if job.schedule_id == known.id]
        before = page[-1].id
    planned = tuple(
        sorted(job.fire_time for job in rows if job.attempt == 0 and job.state is not State.RUNNING)
    )
    started = tuple(sorted(job.fire_time for job in rows if job.attempt > 0 or job.state is State.RUNNING))
    return UpcomingJobs(planned, started), len(rows) < MAX_FIRES


def _planned(
    known: Schedule | None,
    edit: ScheduleEdit,
    ahead: UpcomingJobs,
    now: Micros,
    horizon: Micros,
    all_seen: bool,
) -> SchedulePlan:
    if known is None:
        return _plan_of_new(edit, now, horizon)
    draft = edit.draft
    same = same_draft(known.draft, draft)
    if not same and first_fire(draft, now) is None:
        raise never_fires(draft)
    pausing = edit.paused is not None and edit.paused != known.paused
    before = caught_up(known, now)
    after = before if same and not pausing else edited(before, edit, ahead, now)
    was = upcoming_fires(before, () if known.paused else ahead.planned, now, horizon)
    will_be = was if after is before else upcoming_fires(after, (), now, horizon)
    fires = compare_fires(was, will_be, known.draft, draft, horizon)
    diff = [
        *difference(known.draft, draft),
        *([FieldChange("paused", known.paused, after.paused)] if pausing else []),
    ]
    withdrawn = 0 if after is before else len(ahead.planned)
    new_when = draft.when != known.draft.when
    words = Words(describe(known.draft.when), describe(draft.when))
    return _plan(
        known.version, diff, words, fires, withdrawn, _warnings(after, fires, now, new_when), all_seen
    )


def _plan_of_new(edit: ScheduleEdit, now: Micros, horizon: Micros) -> SchedulePlan:
    draft = edit.draft
    if first_fire(draft, now) is None:
        raise never_fires(draft)
    made = created(draft, bool(edit.paused), now)
    will_be = upcoming_fires(made, (), now, horizon)
    fires = FireChanges(added=will_be.fires, complete=will_be.until >= horizon)
    return _plan(
        None, [], Words(None, describe(draft.when)), fires, 0, _warnings(made, fires, now, True), True
    )


def _plan(
    version: int | None,
    diff: Sequence[FieldChange],
    words: Words,
    fires: FireChanges,
    withdrawn: int,
    warnings: Iterator[str],
    seen: bool,
) -> SchedulePlan:
    shown = PlannedFires(
        fires.kept,
        tuple(map(instant.to_datetime, fires.added)),
        tuple(map(instant.to_datetime, fires.withdrawn)),
        tuple((instant.to_datetime(old), instant.to_datetime(new)) for old, new in fires.moved),
    )
    return SchedulePlan(
        version, tuple(diff), words, shown, withdrawn, tuple(warnings), fires.complete and seen
    )


def _warnings(after: Schedule, fires: FireChanges, now: Micros, new_when: bool) -> Iterator[str]:
    draft = after.draft
    if after.paused:
        yield "the schedule is paused: nothing fires until it is resumed"
    elif draft.max_runs is not None and after.runs >= draft.max_runs:
        yield f"max_runs is {draft.max_runs} and it has fired {after.runs} times: nothing fires any more"
    elif not (fires.kept or fires.added or fires.moved):
        following = first_fire(draft, now, after.runs)
        when = "never" if following is None else f"at {instant.to_datetime(following).isoformat()}"
        yield f"nothing fires within the horizon: the next fire is {when}"
    if new_when:
        yield from surprises(draft.when)
        yield from coming(draft.when, now, draft.end_at)

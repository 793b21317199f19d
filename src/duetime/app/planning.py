"""Looking ahead: the next fires in words and instants, and what an edit of a schedule would change before anybody makes it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from duetime.app.client import Client
from duetime.app.finding import find_schedule
from duetime.engine.checks import check_count
from duetime.engine.commands import already_there, never_fires, same_draft
from duetime.engine.drafts import NO_DEFAULTS, Defaults
from duetime.engine.edits import edited_draft
from duetime.errors import InvalidInput, VersionConflict
from duetime.model import duration, instant
from duetime.model.changes import MOST_FIRES, Ahead, Edit, FireChanges, caught_up, compared, created, edited, outlook
from duetime.model.clock_notes import coming
from duetime.model.definition import FieldChange, difference
from duetime.model.duration import Duration
from duetime.model.instant import Micros
from duetime.model.job import FINAL, Job, JobFilter, State
from duetime.model.preview import Preview, previewed, surprises
from duetime.model.schedule import Schedule, ScheduleDraft, first_fire
from duetime.model.standing import standing
from duetime.model.when import When, describe
from duetime.store import Store
from duetime.task import Task

EDITS = 5  # others' edits an edit that named no version gives way to
HORIZON = "7d"
MOST_PREVIEWED = 1_000
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
    jobs_withdrawn: int  # planned and not started; those of kept fires are planned anew
    warnings: tuple[str, ...]
    complete: bool  # False: there were too many fires to look at all of them within the horizon


class Planning(Client):
    async def preview_when(
        self,
        when: When,
        *,
        count: int = 10,
        after: datetime | None = None,
        start_at: datetime | None = None,
        end_at: datetime | None = None,
    ) -> Preview:
        """The next fires of a `when`, from `after` or from now on: in words, in local time, with what changes of the clocks do to them."""
        self._require_open()
        since = await self._since(after)
        start, end = (None if one is None else instant.read(one, field) for one, field in ((start_at, "start_at"), (end_at, "end_at")))
        return await asyncio.to_thread(_preview, when, _checked(count), since, start, end)

    async def preview_schedule(self, reference: str, *, count: int = 10, after: datetime | None = None) -> Preview:
        """The next fires of a schedule as it stands: within its start and end, no more than its runs, and as if it were not paused."""
        self._require_open()
        schedule = await find_schedule(self._store, self._tenant, reference)
        draft, since = schedule.draft, await self._since(after)
        runs = standing(schedule, await self._commands.now()).runs
        left = _checked(count) if draft.max_runs is None else min(_checked(count), max(0, draft.max_runs - runs))
        return await asyncio.to_thread(_preview, draft.when, left, since, draft.start_at, draft.end_at)

    async def plan_schedule(self, reference: str, changes: Mapping[str, Any], *, horizon: Duration = HORIZON) -> SchedulePlan:
        """What `edit_schedule` with these changes would do: which fires would come, go and move, and how many planned jobs would be
        withdrawn. Nothing is changed."""
        self._require_open()
        known = await find_schedule(self._store, self._tenant, reference)
        return await self.plan_edit(known, await self._edit_of(known, changes), horizon)

    async def edit_schedule(
        self, reference: str, changes: Mapping[str, Any], *, version: int | None = None, author: str | None = None
    ) -> Schedule:
        """Change these fields of a schedule: those `schedule` takes, and `when`, `target` (a task) and `paused`; None takes away what may
        be absent. With `version`, only if it is still that one: VersionConflict otherwise. What is as wanted already changes nothing."""
        self._require_open()
        for _ in range(EDITS):
            known = await find_schedule(self._store, self._tenant, reference)
            edit = await self._edit_of(known, changes)
            if version not in (None, known.version):
                break
            try:
                return await self.apply_edit(known, edit, author)
            except VersionConflict:
                if version is not None:
                    raise
        raise VersionConflict(f"schedule {reference!r} has been changed meanwhile: read it again and repeat the edit")

    # -- for the edges, which read changes in their own words ---------------------------------------------------------
    async def apply_edit(self, known: Schedule, edit: Edit, author: str | None) -> Schedule:
        stored = await self._commands.put_schedule(edit.draft, True, known.version, author=author)
        if edit.paused is None or edit.paused == stored.paused:
            return stored
        if edit.paused:
            return await self._commands.pause_schedule(self._tenant, known.draft.name, None, author)
        return await self._commands.resume_schedule(self._tenant, known.draft.name, author)

    async def plan_edit(self, known: Schedule | None, edit: Edit, horizon: Duration = HORIZON) -> SchedulePlan:
        """Of a schedule that is there, or of a new one."""
        self._require_open()
        span = duration.positive(horizon, "horizon")
        now = await self._commands.now()
        ahead, all_seen = (Ahead(), True) if known is None else await _ahead(self._store, known, now)
        return await asyncio.to_thread(_planned, known, edit, ahead, now, now + span, all_seen)

    async def declared_schedule(self, draft: ScheduleDraft) -> Schedule | None:
        """The schedule of this name if there is one just so; ScheduleExists when it is another."""
        self._require_open()
        known = await self._store.get_schedule(self._tenant, draft.name)
        if known is not None and not same_draft(known.draft, draft):
            raise already_there(draft)
        return known

    async def defaults_for(self, target: str, spec: bytes | None) -> Defaults:
        """What the target says for jobs that do not say otherwise."""
        return NO_DEFAULTS if spec is not None else await self._defaults_of(self._resolve(target)[0])

    async def _edit_of(self, known: Schedule, changes: Mapping[str, Any]) -> Edit:
        wanted = dict(changes)
        if not wanted:
            raise InvalidInput("changes", "says nothing new: give at least one field to change")
        paused = wanted.pop("paused", None)
        if paused is not None and not isinstance(paused, bool):
            raise InvalidInput("paused", f"{paused!r} must be true or false")
        if isinstance(wanted.get("target"), str | Task):
            wanted["target"] = self._resolve(wanted["target"])[0], None
        return Edit(await edited_draft(known.draft, wanted, self.defaults_for), paused)

    async def _since(self, after: datetime | None) -> Micros:
        return await self._commands.now() if after is None else instant.read(after, "after")


def fires_after(when: When, after: Micros, start: Micros | None, end: Micros | None) -> Iterator[Micros]:
    moment = when.next_us(after if start is None else max(after, start - 1))
    while moment is not None and (end is None or moment <= end):
        yield moment
        moment = when.next_us(moment)


def _preview(when: When, count: int, after: Micros, start: Micros | None, end: Micros | None) -> Preview:
    fires = list(islice(fires_after(when, after, start, end), count))
    return previewed(when, fires, after if start is None else max(after, start - 1), end)


def _checked(count: int) -> int:
    if check_count(count, "count") > MOST_PREVIEWED:
        raise InvalidInput("count", f"{count} fires cannot be previewed: ask for 1 to {MOST_PREVIEWED:,}")
    return count


async def _ahead(store: Store, known: Schedule, now: Micros) -> tuple[Ahead, bool]:
    """The jobs of the schedule whose fire lies ahead, and whether these are all."""
    wanted = JobFilter(known.draft.tenant, LIVE, schedule=known.draft.name, fire_after=now + 1)
    rows: list[Job] = []
    before: tuple[Micros, UUID] | None = None
    while len(rows) < MOST_FIRES and (page := await store.list_jobs(wanted, PAGE, before)):
        rows += [job for job in page if job.schedule_id == known.id]
        before = page[-1].fire_time, page[-1].id
    planned = tuple(sorted(job.fire_time for job in rows if job.attempt == 0 and job.state is not State.RUNNING))
    started = tuple(sorted(job.fire_time for job in rows if job.attempt > 0 or job.state is State.RUNNING))
    return Ahead(planned, started), len(rows) < MOST_FIRES


def _planned(known: Schedule | None, edit: Edit, ahead: Ahead, now: Micros, horizon: Micros, all_seen: bool) -> SchedulePlan:
    if known is None:
        return _plan_of_new(edit, now, horizon)
    draft = edit.draft
    same = same_draft(known.draft, draft)
    if not same and first_fire(draft, now) is None:
        raise never_fires(draft)
    pausing = edit.paused is not None and edit.paused != known.paused
    before = caught_up(known, now)
    after = before if same and not pausing else edited(before, edit, ahead, now)
    was = outlook(before, () if known.paused else ahead.planned, now, horizon)
    will_be = was if after is before else outlook(after, (), now, horizon)
    fires = compared(was, will_be, known.draft, draft, horizon)
    diff = [*difference(known.draft, draft), *([FieldChange("paused", known.paused, after.paused)] if pausing else [])]
    withdrawn = 0 if after is before else len(ahead.planned)
    new_when = draft.when != known.draft.when
    words = Words(describe(known.draft.when), describe(draft.when))
    return _plan(known.version, diff, words, fires, withdrawn, _warnings(after, fires, now, new_when), all_seen)


def _plan_of_new(edit: Edit, now: Micros, horizon: Micros) -> SchedulePlan:
    draft = edit.draft
    if first_fire(draft, now) is None:
        raise never_fires(draft)
    made = created(draft, bool(edit.paused), now)
    will_be = outlook(made, (), now, horizon)
    fires = FireChanges(added=will_be.fires, complete=will_be.until >= horizon)
    return _plan(None, [], Words(None, describe(draft.when)), fires, 0, _warnings(made, fires, now, True), True)


def _plan(
    version: int | None, diff: Sequence[FieldChange], words: Words, fires: FireChanges, withdrawn: int, warnings: Iterator[str], seen: bool
) -> SchedulePlan:
    shown = PlannedFires(
        fires.kept,
        tuple(map(instant.to_datetime, fires.added)),
        tuple(map(instant.to_datetime, fires.withdrawn)),
        tuple((instant.to_datetime(old), instant.to_datetime(new)) for old, new in fires.moved),
    )
    return SchedulePlan(version, tuple(diff), words, shown, withdrawn, tuple(warnings), fires.complete and seen)


def _warnings(after: Schedule, fires: FireChanges, now: Micros, new_when: bool) -> Iterator[str]:
    draft = after.draft
    if after.paused:
        yield "the schedule is paused: nothing fires until it is resumed"
    elif draft.max_runs is not None and after.runs >= draft.max_runs:
        yield f"max_runs is {draft.max_runs} and {after.runs} fires have come already: nothing fires any more"
    elif not (fires.kept or fires.added or fires.moved):
        following = first_fire(draft, now, after.runs)
        when = "never" if following is None else f"at {instant.to_datetime(following).isoformat()}"
        yield f"nothing fires within the horizon: the next fire is {when}"
    if new_when:
        yield from surprises(draft.when)
        yield from coming(draft.when, now, draft.end_at)

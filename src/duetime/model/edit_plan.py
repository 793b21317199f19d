"""The effect of an edit on the fires of a schedule. It uses the planner's own rule, so that the plan comes
true.

An edit withdraws planned jobs that have not started, and plans again from now on. Jobs that have started or
are due stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from duetime.model.forecast import local_clock
from duetime.model.instant import Micros
from duetime.model.schedule import Schedule, ScheduleDraft, first_fire, plan_fires

HORIZON = "7d"  # of a plan, if its reader says nothing else
MAX_FIRES = 12_000  # a little more than a week of one fire a minute
MAX_CATCH_UP_STEPS = 100  # for due fires that no planner has turned into jobs

Local = Callable[[Micros], datetime]


class UpcomingJobs(NamedTuple):
    """The fire times of jobs whose fire is in the future."""

    planned: tuple[Micros, ...] = ()  # have not started: an edit withdraws them
    started: tuple[Micros, ...] = ()


class ScheduleEdit(NamedTuple):
    """What a caller wants to change; `paused` None leaves the pause as it is."""

    draft: ScheduleDraft
    paused: bool | None = None


class UpcomingFires(NamedTuple):
    """All fires up to `until`, in order."""

    fires: tuple[Micros, ...]
    until: Micros


@dataclass(frozen=True, slots=True)
class FireChanges:
    kept: int = 0
    added: tuple[Micros, ...] = ()
    withdrawn: tuple[Micros, ...] = ()
    moved: tuple[tuple[Micros, Micros], ...] = ()
    complete: bool = True  # False: there were too many to compare them all


def created(draft: ScheduleDraft, paused: bool, now: Micros) -> Schedule:
    """A schedule as it will be stored."""
    return Schedule(draft, draft.id, 1, 0, paused, None, first_fire(draft, now), None, 0, now, now)


def caught_up(schedule: Schedule, now: Micros) -> Schedule:
    """The schedule after its due fires, which the edit does not change."""
    for _ in range(MAX_CATCH_UP_STEPS):
        if schedule.paused or schedule.next_fire_time is None or schedule.next_fire_time > now:
            return schedule
        schedule = _stepped(schedule, now, now)[0]
    return replace(schedule, next_fire_time=first_fire(schedule.draft, now, schedule.runs))


def edited(schedule: Schedule, edit: ScheduleEdit, upcoming: UpcomingJobs, now: Micros) -> Schedule:
    """The schedule after the edit, as the store will have it."""
    last = [] if schedule.last_fire_time is None else [min(schedule.last_fire_time, now)]
    runs = schedule.runs - len(upcoming.planned)
    after = replace(
        schedule,
        draft=replace(edit.draft, id=schedule.id),
        next_fire_time=first_fire(edit.draft, now),
        last_fire_time=max([*last, *upcoming.started], default=None),
        runs=runs,
    )
    if edit.paused is None or edit.paused == schedule.paused:
        return after
    return replace(after, paused=edit.paused, next_fire_time=first_fire(edit.draft, now, runs))


def upcoming_fires(
    schedule: Schedule, planned: Sequence[Micros], now: Micros, horizon: Micros, most: int = MAX_FIRES
) -> UpcomingFires:
    """The fires up to `horizon` without another edit: the planned ones and those the planner will add."""
    fires = sorted(moment for moment in planned if moment <= horizon)
    while not schedule.paused and schedule.next_fire_time is not None and schedule.next_fire_time <= horizon:
        if len(fires) >= most:
            return UpcomingFires(tuple(fires[:most]), fires[most - 1])
        schedule, moments = _stepped(schedule, now, horizon)
        fires += moments
    return UpcomingFires(tuple(fires[:most]), horizon if len(fires) <= most else fires[most - 1])


def compare_fires(
    before: UpcomingFires, after: UpcomingFires, old: ScheduleDraft, new: ScheduleDraft, horizon: Micros
) -> FireChanges:
    """A withdrawn fire and a new one count as moved if a local day, or else a week, has the same number of
    both."""
    until = min(before.until, after.until)
    was, will_be = ({moment for moment in one.fires if moment <= until} for one in (before, after))
    gone, new_ones = sorted(was - will_be), sorted(will_be - was)
    moved: list[tuple[Micros, Micros]] = []
    clocks = local_clock(old.when), local_clock(new.when)
    for period in (_day, _week):
        pairs = _paired(_grouped(gone, clocks[0], period), _grouped(new_ones, clocks[1], period))
        moved += pairs
        left, arrived = {one for one, _ in pairs}, {one for _, one in pairs}
        gone, new_ones = (
            [one for one in gone if one not in left],
            [one for one in new_ones if one not in arrived],
        )
    return FireChanges(
        len(was & will_be), tuple(new_ones), tuple(gone), tuple(sorted(moved)), until >= horizon
    )


def _stepped(schedule: Schedule, now: Micros, horizon: Micros) -> tuple[Schedule, list[Micros]]:
    firing = plan_fires(schedule, now, horizon)
    moments = [fire.fire_time for fire in firing.fires]
    last = [moment for moment in (schedule.last_fire_time, *moments[-1:]) if moment is not None]
    after = replace(
        schedule,
        next_fire_time=firing.next_fire_time,
        runs=firing.runs,
        last_fire_time=max(last, default=None),
    )
    return after, moments


def _grouped(
    moments: Sequence[Micros], clock: Local, period: Callable[[datetime], Hashable]
) -> dict[Hashable, list[Micros]]:
    groups: dict[Hashable, list[Micros]] = defaultdict(list)
    for moment in moments:
        groups[period(clock(moment))].append(moment)
    return groups


def _paired(
    gone: dict[Hashable, list[Micros]], new: dict[Hashable, list[Micros]]
) -> list[tuple[Micros, Micros]]:
    same = [(group, new[period]) for period, group in gone.items() if len(new.get(period, ())) == len(group)]
    return [pair for group, others in same for pair in zip(group, others, strict=True)]


def _day(moment: datetime) -> Hashable:
    return moment.date()


def _week(moment: datetime) -> Hashable:
    return moment.isocalendar()[:2]

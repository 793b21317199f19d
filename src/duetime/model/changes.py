"""What an edit of a schedule does to its fires: worked out with the planner's own rule, so that it is what then happens.

An edit withdraws the jobs that are planned and have not started, and plans anew from now on; what has started, or has fallen due, stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from duetime.model.instant import Micros
from duetime.model.preview import local_clock
from duetime.model.schedule import Schedule, ScheduleDraft, first_fire, plan_fires

MOST_FIRES = 12_000  # a week of one fire a minute, and some more
MOST_TURNS = 100  # of catching up with fires that no planner came round to

Local = Callable[[Micros], datetime]


class Ahead(NamedTuple):
    """Fire times of the jobs whose fire lies ahead."""

    planned: tuple[Micros, ...] = ()  # not started: an edit withdraws them
    started: tuple[Micros, ...] = ()


class Edit(NamedTuple):
    """What a caller wants of a schedule; None leaves its pause as it is."""

    draft: ScheduleDraft
    paused: bool | None = None


class Outlook(NamedTuple):
    """Fires to come, in order; all there are up to `until`."""

    fires: tuple[Micros, ...]
    until: Micros


@dataclass(frozen=True, slots=True)
class FireChanges:
    kept: int = 0
    added: tuple[Micros, ...] = ()
    withdrawn: tuple[Micros, ...] = ()
    moved: tuple[tuple[Micros, Micros], ...] = ()
    complete: bool = True  # False: there were too many to look at all of them


def created(draft: ScheduleDraft, paused: bool, now: Micros) -> Schedule:
    """A schedule that is not stored yet, as it would be."""
    return Schedule(draft, draft.id, 1, 0, paused, None, first_fire(draft, now), None, 0, now, now)


def caught_up(schedule: Schedule, now: Micros) -> Schedule:
    """After the fires that fell due, which belong to the schedule as it is."""
    for _ in range(MOST_TURNS):
        if schedule.paused or schedule.next_fire_time is None or schedule.next_fire_time > now:
            return schedule
        schedule = _stepped(schedule, now, now)[0]
    return replace(schedule, next_fire_time=first_fire(schedule.draft, now, schedule.runs))


def edited(schedule: Schedule, edit: Edit, ahead: Ahead, now: Micros) -> Schedule:
    """The schedule after the edit: what a store makes of it."""
    last = [] if schedule.last_fire_time is None else [min(schedule.last_fire_time, now)]
    runs = schedule.runs - len(ahead.planned)
    after = replace(
        schedule,
        draft=replace(edit.draft, id=schedule.id),
        next_fire_time=first_fire(edit.draft, now),
        last_fire_time=max([*last, *ahead.started], default=None),
        runs=runs,
    )
    if edit.paused is None or edit.paused == schedule.paused:
        return after
    return replace(after, paused=edit.paused, next_fire_time=first_fire(edit.draft, now, runs))


def outlook(schedule: Schedule, planned: Sequence[Micros], now: Micros, horizon: Micros, most: int = MOST_FIRES) -> Outlook:
    """What fires up to `horizon` if nobody changes anything: what is planned, and what the planner will add to it."""
    fires = sorted(moment for moment in planned if moment <= horizon)
    while not schedule.paused and schedule.next_fire_time is not None and schedule.next_fire_time <= horizon:
        if len(fires) >= most:
            return Outlook(tuple(fires[:most]), fires[most - 1])
        schedule, moments = _stepped(schedule, now, horizon)
        fires += moments
    return Outlook(tuple(fires[:most]), horizon if len(fires) <= most else fires[most - 1])


def compared(before: Outlook, after: Outlook, old: ScheduleDraft, new: ScheduleDraft, horizon: Micros) -> FireChanges:
    """One that goes and one that comes are one that moved, where there are as many of either on the same local day, or else week."""
    until = min(before.until, after.until)
    was, will_be = ({moment for moment in one.fires if moment <= until} for one in (before, after))
    gone, new_ones = sorted(was - will_be), sorted(will_be - was)
    moved: list[tuple[Micros, Micros]] = []
    clocks = local_clock(old.when), local_clock(new.when)
    for period in (_day, _week):
        pairs = _paired(_grouped(gone, clocks[0], period), _grouped(new_ones, clocks[1], period))
        moved += pairs
        left, arrived = {one for one, _ in pairs}, {one for _, one in pairs}
        gone, new_ones = [one for one in gone if one not in left], [one for one in new_ones if one not in arrived]
    return FireChanges(len(was & will_be), tuple(new_ones), tuple(gone), tuple(sorted(moved)), until >= horizon)


def _stepped(schedule: Schedule, now: Micros, horizon: Micros) -> tuple[Schedule, list[Micros]]:
    firing = plan_fires(schedule, now, horizon)
    moments = [fire.fire_time for fire in firing.fires]
    last = [moment for moment in (schedule.last_fire_time, *moments[-1:]) if moment is not None]
    after = replace(schedule, next_fire_time=firing.next_fire_time, runs=firing.runs, last_fire_time=max(last, default=None))
    return after, moments


def _grouped(moments: Sequence[Micros], clock: Local, period: Callable[[datetime], Hashable]) -> dict[Hashable, list[Micros]]:
    groups: dict[Hashable, list[Micros]] = defaultdict(list)
    for moment in moments:
        groups[period(clock(moment))].append(moment)
    return groups


def _paired(gone: dict[Hashable, list[Micros]], new: dict[Hashable, list[Micros]]) -> list[tuple[Micros, Micros]]:
    same = [(group, new[period]) for period, group in gone.items() if len(new.get(period, ())) == len(group)]
    return [pair for group, others in same for pair in zip(group, others, strict=True)]


def _day(moment: datetime) -> Hashable:
    return moment.date()


def _week(moment: datetime) -> Hashable:
    return moment.isocalendar()[:2]

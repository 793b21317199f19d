"""The status of a schedule at an instant: its last and next fire. The row itself does not say so, because the
planner works ahead of the clock: its `next_fire_time` is the first fire without a job, and its
`last_fire_time` and `runs` include fires in the future."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from duetime.errors import InvalidInput
from duetime.model.instant import SECOND, Micros
from duetime.model.schedule import Schedule, ScheduleDraft, first_fire


class ScheduleStatus(NamedTuple):
    next_fire_time: Micros | None  # None: it is paused or has no more fires
    last_fire_time: Micros | None
    runs: int


def schedule_status(schedule: Schedule, now: Micros) -> ScheduleStatus:
    last = schedule.last_fire_time
    stored = ScheduleStatus(None if schedule.paused else schedule.next_fire_time, last, schedule.runs)
    if last is None or last <= now:
        return stored  # a cursor in the past is not changed: the planner is late, and so is the fire
    try:
        ahead = list(_fires(schedule.draft, now, last))
        runs = max(schedule.runs - len(ahead), 0)
        return ScheduleStatus(
            min(ahead, default=stored.next_fire_time), _latest(schedule, now) if runs else None, runs
        )
    except InvalidInput:  # its `when` has become invalid
        return stored


def _fires(draft: ScheduleDraft, after: Micros, last: Micros) -> Iterator[Micros]:
    moment = first_fire(draft, after)
    while moment is not None and moment <= last:
        yield moment
        moment = first_fire(draft, moment)


def _latest(schedule: Schedule, now: Micros) -> Micros | None:
    """Its latest fire up to `now`; None if the last edit came after it, because it may then come from another
    rule."""
    since = schedule.updated_at
    back = SECOND
    while (
        True
    ):  # doubling finds a fire a year ago in 25 steps, and looks back at most twice as far as necessary
        start = max(now - back, since)
        found = max(_fires(schedule.draft, start - 1, now), default=None)
        if found is not None or start == since:
            return found
        back *= 2

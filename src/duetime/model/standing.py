"""How a schedule stands at a moment: what has fired, and what comes. Its row cannot say so, since the planner works ahead of the clock:
`next_fire_time` there is the first fire without a job, and `last_fire_time` and `runs` count fires that are still to come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from duetime.errors import InvalidInput
from duetime.model.instant import SECOND, Micros
from duetime.model.schedule import Schedule, ScheduleDraft, first_fire


class Standing(NamedTuple):
    next_fire_time: Micros | None  # None: it is paused, or none is left
    last_fire_time: Micros | None
    runs: int


def standing(schedule: Schedule, now: Micros) -> Standing:
    last = schedule.last_fire_time
    stored = Standing(None if schedule.paused else schedule.next_fire_time, last, schedule.runs)
    if last is None or last <= now:
        return stored  # a cursor in the past stays one: the planner is late, and so is the fire
    try:
        ahead = list(_fires(schedule.draft, now, last))
        runs = max(schedule.runs - len(ahead), 0)
        return Standing(min(ahead, default=stored.next_fire_time), _latest(schedule, now) if runs else None, runs)
    except InvalidInput:  # its `when` cannot be read any more
        return stored


def _fires(draft: ScheduleDraft, after: Micros, last: Micros) -> Iterator[Micros]:
    moment = first_fire(draft, after)
    while moment is not None and moment <= last:
        yield moment
        moment = first_fire(draft, moment)


def _latest(schedule: Schedule, now: Micros) -> Micros | None:
    """Its latest fire up to `now`; None when the last edit came after it, for then another rule may have made it."""
    since = schedule.updated_at
    back = SECOND
    while True:  # doubling finds a fire a year ago in 25 steps, and none lies more than twice as far back as it must
        start = max(now - back, since)
        found = max(_fires(schedule.draft, start - 1, now), default=None)
        if found is not None or start == since:
            return found
        back *= 2

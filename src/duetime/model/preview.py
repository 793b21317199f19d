"""The next fires as people want to see them: in words, in local time, with what is surprising about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from duetime.model import clock_notes, cron, instant
from duetime.model.instant import SECOND, Micros
from duetime.model.when import Cron, When, describe, is_interval, uses_hash


@dataclass(frozen=True, slots=True)
class PreviewedFire:
    at: datetime  # UTC
    local: datetime  # the same instant on the clocks of the schedule's time zone
    note: str | None  # what a change of the clocks has to do with it


@dataclass(frozen=True, slots=True)
class Preview:
    words: str
    fires: tuple[PreviewedFire, ...]
    warnings: tuple[str, ...]


def previewed(when: When, fires: Sequence[Micros], after: Micros, end: Micros | None = None) -> Preview:
    """Of `fires`: all there are after `after`, up to the last of them. `end`: no fire comes after it."""
    notes = clock_notes.notes(when, fires, after)
    local = local_clock(when)
    shown = tuple(PreviewedFire(instant.to_datetime(fire), local(fire), notes.get(fire)) for fire in fires)
    told = [] if fires else ["no fire lies ahead: all its instants are past, or outside start_at and end_at"]
    reached = max([after, *fires[-1:]])
    return Preview(describe(when), shown, (*told, *surprises(when), *clock_notes.coming(when, reached, end)))


def local_clock(when: When) -> Callable[[Micros], datetime]:
    """What the clocks of its time zone show at an instant."""
    wall = clock_notes.wall_of(when)
    if wall is None:
        return instant.to_datetime
    place = wall.zone
    return lambda moment: instant.to_datetime(moment).astimezone(timezone(timedelta(seconds=place.period_at(moment // SECOND).offset)))


def surprises(when: When) -> list[str]:
    """What people often mean otherwise."""
    if not isinstance(when, Cron) or is_interval(when):
        return []
    pattern, found = cron.parse(when.expr, when.key), []
    if uses_hash(when) and not when.key:
        found.append("H is placed by the schedule's name: a schedule fires at other times than these")
    by_month = bool(pattern.month_days) and len(pattern.month_days) < 31
    if pattern.either_day and (by_month or not pattern.month_days) and len(pattern.weekdays) < 7:
        found.append("day of month and day of week are both given: it fires on days that match either, not only on those that match both")
    ends = pattern.last_offsets or pattern.last_workday_offsets or pattern.nearest_workdays
    if by_month and pattern.month_days[0] > 28 and not ends and not pattern.either_day:
        found.append(f"months without a day {pattern.month_days[0]} are left out: write L for the last day of each month")
    return found

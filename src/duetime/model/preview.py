"""The next fires for people: in words, in local time, with warnings about what may surprise them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from duetime.model import cron, instant
from duetime.model.describe import clock_changes
from duetime.model.describe.when import describe
from duetime.model.instant import SECOND, Micros
from duetime.model.when import Cron, When, is_interval, uses_hash, wall_clock


@dataclass(frozen=True, slots=True)
class PreviewedFire:
    at: datetime  # UTC
    local: datetime  # the same instant in the schedule's time zone
    note: str | None  # what a clock change does to it


@dataclass(frozen=True, slots=True)
class Preview:
    words: str
    fires: tuple[PreviewedFire, ...]
    warnings: tuple[str, ...]


def previewed(when: When, fires: Sequence[Micros], after: Micros, end: Micros | None = None) -> Preview:
    """`fires` are all fires after `after`, up to the last of them. There is no fire after `end`."""
    notes = clock_changes.notes(when, fires, after)
    local = local_clock(when)
    shown = tuple(PreviewedFire(instant.to_datetime(fire), local(fire), notes.get(fire)) for fire in fires)
    empty = (
        []
        if fires
        else ["there are no more fires: all its instants are in the past, or outside start_at and end_at"]
    )
    reached = max([after, *fires[-1:]])
    return Preview(
        describe(when), shown, (*empty, *surprises(when), *clock_changes.coming(when, reached, end))
    )


def local_clock(when: When) -> Callable[[Micros], datetime]:
    """Converts an instant to the local time of its zone."""
    wall = wall_clock(when)
    if wall is None:
        return instant.to_datetime
    place = wall.zone
    return lambda moment: instant.to_datetime(moment).astimezone(
        timezone(timedelta(seconds=place.period_at(moment // SECOND).offset))
    )


def surprises(when: When) -> list[str]:
    """Warnings about expressions that often mean something else than intended."""
    if not isinstance(when, Cron) or is_interval(when):
        return []
    pattern, found = cron.parse(when.expr, when.key), []
    if uses_hash(when) and not when.key:
        found.append("H depends on the name of the schedule: a schedule fires at other times than these")
    by_month = bool(pattern.month_days) and len(pattern.month_days) < 31
    if pattern.either_day and (by_month or not pattern.month_days) and len(pattern.weekdays) < 7:
        found.append(
            "day of month and day of week are both given: it fires on days that match either of them"
        )
    ends = pattern.last_offsets or pattern.last_workday_offsets or pattern.nearest_workdays
    if by_month and pattern.month_days[0] > 28 and not ends and not pattern.either_day:
        found.append(f"months without a day {pattern.month_days[0]} are skipped: write L for the last day")
    return found

"""Cron expressions in words, exactly: two that read the same fire at the same instants.

A set of times reads as fixed times ("at 02:30") or as a pace ("every 5 minutes"). Usually it also behaves
like that at a clock change. An expression that does not (`*/30 2 * * *`) is marked "in real time" or "as
fixed times". `when` says what the two mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model import cron
from duetime.model.cron import Pattern
from duetime.model.describe.text import (
    WEEKDAYS,
    around,
    before_last,
    evenly,
    joined,
    listed,
    numbered,
    of_months,
    of_zone,
)

MAX_LISTED_TIMES = 6
_NTH = ("first", "second", "third", "fourth", "fifth")


def of_cron(expression: str, tz: str, key: str) -> str:
    """The expression must be valid."""
    pattern = cron.parse(expression, key)
    parts = [
        of_times(pattern.seconds, pattern.minutes, pattern.hours),
        _manner(pattern, tz),
        _days(pattern),
        of_months(pattern.months),
    ]
    return ", ".join(part for part in (*parts, of_zone(tz)) if part)


def of_times(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> str:
    """All times of a day from these values; none of the three is empty."""
    if _are_listed(seconds, minutes, hours):
        return f"at {joined(_clock_times(seconds, minutes, hours))}"
    if tuple(seconds) != (0,):
        return _seconds_of(seconds, minutes, hours)
    if len(minutes) == 1:
        return _hourly(minutes[0], hours)
    pace = evenly(minutes, 60)
    if pace is None:
        return f"at {numbered(minutes, 60, 'minute')} of {_hours(hours)}"
    return _every(pace, "minute") + _span(hours)


def _are_listed(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> bool:
    return len(seconds) * len(minutes) * len(hours) <= MAX_LISTED_TIMES


def _clock_times(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> list[str]:
    tail = tuple(seconds) != (0,)
    return [
        f"{hour:02}:{minute:02}" + (f":{second:02}" if tail else "")
        for hour in hours
        for minute in minutes
        for second in seconds
    ]


def _seconds_of(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> str:
    pace, every_minute, every_hour = evenly(seconds, 60), len(minutes) == 60, len(hours) == 24
    parts = [f"at {numbered(seconds, 60, 'second')}" if pace is None else _every(pace, "second")]
    if not every_minute:
        parts.append(numbered(minutes, 60, "minute"))
    elif pace is None:
        parts.append("every minute")
    if not every_hour or not every_minute:
        parts.append(_hours(hours))
    return " of ".join(parts)


def _hourly(minute: int, hours: Sequence[int]) -> str:
    pace, turn = evenly(hours, 24), around(hours, 24)
    if pace is not None:
        return _every(pace, "hour") + (f" at minute {minute}" if minute else "")
    if turn is not None:
        return f"every hour from {turn[0]:02}:{minute:02} to {turn[1]:02}:{minute:02}"
    return f"at {joined(_clock_times((0,), (minute,), hours))}"


def _every(step: int, unit: str) -> str:
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


def _hours(hours: Sequence[int]) -> str:
    return "every hour" if len(hours) == 24 else numbered(hours, 24, "hour")


def _span(hours: Sequence[int]) -> str:
    if len(hours) == 24:
        return ""
    turn = around(hours, 24)
    return f" of {_hours(hours)}" if turn is None else f" from {turn[0]:02}:00 to {turn[1]:02}:59"


def _manner(pattern: Pattern, tz: str) -> str:
    """Only where the times suggest otherwise. In UTC, clocks never change."""
    sounds_fixed = _are_listed(pattern.seconds, pattern.minutes, pattern.hours) or (
        evenly(pattern.minutes, 60) is None and evenly(pattern.hours, 24) is None
    )
    if tz == "UTC" or pattern.fixed_time == sounds_fixed:
        return ""
    return "as fixed times" if pattern.fixed_time else "in real time"


def _days(pattern: Pattern) -> str:
    by_month, by_week = _month_days(pattern), _weekdays(pattern)
    if pattern.either_day and by_month and by_week:
        return f"{by_month} or on {by_week}"
    if pattern.either_day or not (by_month or by_week):
        daily = evenly(pattern.hours, 24) is None or _are_listed(
            pattern.seconds, pattern.minutes, pattern.hours
        )
        return "every day" if daily else ""
    if by_month and by_week:
        return f"{by_month} if that is {_weekdays(pattern, 'or')}"
    return by_month or (f"on {by_week}" if pattern.nth_weekdays or pattern.last_weekdays else by_week)


def _month_days(pattern: Pattern) -> str:
    """Empty if every day matches."""
    if len(pattern.month_days) == 31:
        return ""
    parts = [numbered(pattern.month_days, 32, "day")] if pattern.month_days else []
    parts += [before_last(offset, "day") for offset in pattern.last_offsets]
    parts += [f"the workday nearest day {day}" for day in pattern.nearest_workdays]
    parts += [
        f"the workday nearest {before_last(offset, 'day')}" if offset else "the last workday"
        for offset in pattern.last_workday_offsets
    ]
    return f"on {joined(parts)} of the month"


def _weekdays(pattern: Pattern, word: str = "and") -> str:
    """Empty if every day matches. Weeks begin on Monday, so that Saturday and Sunday are together."""
    if len(pattern.weekdays) == 7:
        return ""
    plain = sorted((weekday - 1) % 7 for weekday in pattern.weekdays)
    parts = [listed(plain, WEEKDAYS, word)] if plain else []
    special = [f"the {_NTH[nth - 1]} {WEEKDAYS[weekday - 1]}" for weekday, nth in pattern.nth_weekdays]
    special += [f"the last {WEEKDAYS[weekday - 1]}" for weekday in pattern.last_weekdays]
    return joined(parts + special, word) + (" of the month" if special else "")

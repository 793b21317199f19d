"""Cron and intervals in plain English, for people who look at a schedule; what has no short form is shown as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from duetime.model import cron
from duetime.model.cron import Pattern

_MOST_TIMES = 6
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
_NTH = ("first", "second", "third", "fourth", "fifth")
_UNITS = (("week", 604_800_000_000), ("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))


def describe(expression: str, tz: str, key: str) -> str:
    """For an expression that has been read before, so that it is known to be right."""
    pattern = cron.parse(expression, key)
    time, days = _time(pattern), _days(pattern)
    if time is None or days is None or (pattern.hashed and not key):
        return f"{expression} ({tz})"
    return " ".join(part for part in (time, days, _in_months(pattern.months), f"({tz})") if part)


def describe_interval(interval: timedelta) -> str:
    """Whole units where there are any: "every 5 minutes", "every hour and 30 minutes"."""
    left, parts = interval // timedelta(microseconds=1), []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(_counted(count, unit))
    if left:
        parts.append(f"{left / 1000:g} milliseconds")
    return f"every {_joined(parts).removeprefix('1 ')}"


def uses_hash(expression: str) -> bool:
    return not expression.startswith("@") and cron.parse(expression).hashed


def _time(pattern: Pattern) -> str | None:
    seconds, minutes, hours = pattern.seconds, pattern.minutes, pattern.hours
    always, whole_hours = len(hours) == 24, len(minutes) == 60
    if len(minutes) * len(hours) * len(seconds) <= _MOST_TIMES:
        return _clock_times(pattern)
    if seconds != (0,):
        pace = _pace(seconds, 60, "second")
        return pace if always and whole_hours else None
    if len(minutes) == 1:
        pace = _pace(hours, 24, "hour")
        return pace and pace + (f" at minute {minutes[0]}" if minutes[0] else "")
    pace = _pace(minutes, 60, "minute")
    if pace is None or always:
        return pace
    return f"{pace} from {hours[0]:02}:00 to {hours[-1]:02}:59" if _is_run(hours) else None


def _clock_times(pattern: Pattern) -> str:
    tail = pattern.seconds != (0,)
    times = [
        f"{hour:02}:{minute:02}" + (f":{second:02}" if tail else "")
        for hour in pattern.hours
        for minute in pattern.minutes
        for second in pattern.seconds
    ]
    return f"at {_joined(times)}"


def _pace(values: Sequence[int], size: int, unit: str) -> str | None:
    """ "every 5 minutes" when the values go round evenly, else None."""
    if len(values) == size:
        return f"every {unit}"
    step = size // len(values)
    return f"every {step} {unit}s" if tuple(values) == tuple(range(0, size, step)) and size % step == 0 else None


def _days(pattern: Pattern) -> str | None:
    """Empty for every day; None when there is no short way to say it."""
    by_month, by_week = _month_days(pattern), _weekdays(pattern)
    if not by_month or not by_week:
        return by_month or by_week if not pattern.either_day else ""
    return f"{by_month} or {by_week}" if pattern.either_day else None


def _month_days(pattern: Pattern) -> str:
    if len(pattern.month_days) == 31:
        return ""
    days, parts = pattern.month_days, []
    if days:
        parts.append(f"{'days' if len(days) > 1 else 'day'} {_runs([str(day) for day in range(32)], days)}")
    parts += [_before_last(offset) or "the last day" for offset in pattern.last_offsets]
    parts += [f"the workday nearest day {day}" for day in pattern.nearest_workdays]
    before = [_before_last(offset) for offset in pattern.last_workday_offsets]
    parts += [f"the workday nearest {day}" if day else "the last workday" for day in before]
    return f"on {_joined(parts)} of the month"


def _before_last(offset: int) -> str:
    return f"{_counted(offset, 'day')} before the last day" if offset else ""


def _weekdays(pattern: Pattern) -> str:
    if len(pattern.weekdays) == 7:
        return ""
    # People count the week from Monday: without this, Saturday and Sunday would stand at its two ends.
    ordered = sorted(pattern.weekdays, key=lambda weekday: (weekday - 1) % 7)
    parts = [_runs((*_WEEKDAYS[1:], _WEEKDAYS[0]), [(weekday - 1) % 7 for weekday in ordered])] if ordered else []
    special = [f"the {_NTH[nth - 1]} {_WEEKDAYS[weekday]}" for weekday, nth in pattern.nth_weekdays]
    special += [f"the last {_WEEKDAYS[weekday]}" for weekday in pattern.last_weekdays]
    return f"on {_joined(parts + special)}" + (" of the month" if special else "")


def _in_months(months: tuple[int, ...]) -> str:
    return "" if len(months) == 12 else f"in {_runs(_MONTHS, [month - 1 for month in months])}"


def _runs(names: Sequence[str], values: Sequence[int]) -> str:
    """Three or more in a row become "Monday to Friday"; the rest is listed."""
    if len(values) > 2 and _is_run(values):
        return f"{names[values[0]]} to {names[values[-1]]}"
    return _joined([names[value] for value in values])


def _is_run(values: Sequence[int]) -> bool:
    return values[-1] - values[0] == len(values) - 1


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" + ("s" if count > 1 else "")

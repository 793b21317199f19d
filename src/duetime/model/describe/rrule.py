"""Recurrence rules in words, part by part and exactly: two that read the same fire at the same instants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from duetime.model.describe.cron import of_times
from duetime.model.describe.text import (
    WEEKDAYS,
    before_last,
    counted,
    joined,
    listed,
    numbered,
    of_instant,
    of_months,
    of_zone,
    ordinal,
)
from duetime.model.instant import EPOCH, to_datetime
from duetime.model.rrule import Recurrence
from duetime.model.rrule_search import Frequency, RecurrenceRule

_UNITS = {
    Frequency.SECONDLY: "second",
    Frequency.MINUTELY: "minute",
    Frequency.HOURLY: "hour",
    Frequency.DAILY: "day",
    Frequency.WEEKLY: "week",
    Frequency.MONTHLY: "month",
    Frequency.YEARLY: "year",
}
_SIZES = {"day": 400, "week": 60}  # more than any calendar has, so that no range continues past the end


def of_rule(recurrence: Recurrence) -> str:
    rule = recurrence.rule
    parts = [
        _pace(rule),
        of_months(rule.months),
        *_days(rule),
        _times(rule),
        _positions(rule),
        _week_start(rule),
    ]
    return ", ".join(part for part in (*parts, of_zone(recurrence.zone.name), *_bounds(recurrence)) if part)


def _pace(rule: RecurrenceRule) -> str:
    unit = _UNITS[rule.frequency]
    return f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"


def _days(rule: RecurrenceRule) -> Iterator[str]:
    """All filters of days must match: the first names the days, the others restrict them."""
    kept = [
        _from_either_end(rule.weeks, "week", "year", "in"),
        _from_either_end(rule.year_days, "day", "year", "on"),
        _from_either_end(rule.month_days, "day", "month", "on"),
        _weekdays(rule),
    ]
    for number, phrase in enumerate(phrase for phrase in kept if phrase):
        yield f"only {phrase}" if number else phrase


def _from_either_end(values: Sequence[int], unit: str, whole: str, preposition: str) -> str:
    forward, backward = (
        [value for value in values if value > 0],
        sorted(-value for value in values if value < 0),
    )
    parts = [numbered(forward, _SIZES[unit], unit)] if forward else []
    parts += [before_last(value - 1, unit) for value in backward]
    return f"{preposition} {joined(parts)} of the {whole}" if parts else ""


def _weekdays(rule: RecurrenceRule) -> str:
    plain = [weekday for nth, weekday in rule.weekdays if nth == 0]
    parts = [listed(plain, WEEKDAYS)] if plain else []
    special = [_nth_weekday(nth, weekday) for nth, weekday in rule.weekdays if nth]
    whole = "month" if rule.frequency == Frequency.MONTHLY or rule.months else "year"
    return f"on {joined(parts + special)}" + (f" of the {whole}" if special else "") if rule.weekdays else ""


def _nth_weekday(nth: int, weekday: int) -> str:
    name = WEEKDAYS[weekday]
    return f"the {ordinal(nth)} {name}" if nth > 0 else before_last(-nth - 1, name)


def _times(rule: RecurrenceRule) -> str:
    if rule.frequency >= Frequency.DAILY:
        return of_times(rule.seconds, rule.minutes, rule.hours)
    parts = []
    if rule.frequency == Frequency.HOURLY and rule.minutes == (0,) and rule.seconds == (0,):
        pass  # "every hour" says it
    elif rule.minutes:
        parts.append(f"at {numbered(rule.minutes, 60, 'minute')}")
    if rule.seconds and not (rule.frequency >= Frequency.MINUTELY and rule.seconds == (0,)):
        parts.append(f"at {numbered(rule.seconds, 60, 'second')}")
    if rule.hours:
        parts.append(f"in {numbered(rule.hours, 24, 'hour')}")
    return ", ".join(parts)


def _positions(rule: RecurrenceRule) -> str:
    if not rule.positions:
        return ""
    forward, backward = (
        [value for value in rule.positions if value > 0],
        sorted(-value for value in rule.positions if value < 0),
    )
    chosen = [ordinal(value) for value in forward] + [
        "last" if value == 1 else f"{ordinal(value)} last" for value in backward
    ]
    return f"of these only the {joined(chosen)} in each {_UNITS[rule.frequency]}"


def _week_start(rule: RecurrenceRule) -> str:
    counts = rule.weeks or (rule.frequency == Frequency.WEEKLY and (rule.interval > 1 or rule.positions))
    return f"with weeks from {WEEKDAYS[rule.week_start]} on" if rule.week_start and counts else ""


def _bounds(recurrence: Recurrence) -> Iterator[str]:
    if recurrence.rule.start:
        yield f"from {_local_text(recurrence.rule.start)} on"
    if recurrence.count is not None:
        yield counted(recurrence.count, "time")
    elif recurrence.last is not None:
        yield f"until {_local_text(recurrence.last)}"
    elif recurrence.until is not None:
        yield f"until {of_instant(to_datetime(recurrence.until))}"


def _local_text(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(" ")

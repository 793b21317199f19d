"""Recurrence rules in words, part by part and exactly: two that read the same fire at the same instants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from duetime.model import words
from duetime.model.instant import EPOCH, to_datetime
from duetime.model.phrases import counted, joined, listed, numbered, ordinal
from duetime.model.rrule import Recurrence
from duetime.model.rrule_search import Frequency, Rule

_UNITS = {
    Frequency.SECONDLY: "second",
    Frequency.MINUTELY: "minute",
    Frequency.HOURLY: "hour",
    Frequency.DAILY: "day",
    Frequency.WEEKLY: "week",
    Frequency.MONTHLY: "month",
    Frequency.YEARLY: "year",
}
_SIZES = {"day": 400, "week": 60}  # more than any calendar has, so that no list goes round over the end


def of_rule(recurrence: Recurrence) -> str:
    rule = recurrence.rule
    parts = [_pace(rule), words.of_months(rule.months), *_days(rule), _times(rule), _positions(rule), _week_start(rule)]
    return ", ".join(part for part in (*parts, words.of_zone(recurrence.zone.name), *_bounds(recurrence)) if part)


def _pace(rule: Rule) -> str:
    unit = _UNITS[rule.frequency]
    return f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"


def _days(rule: Rule) -> Iterator[str]:
    """Every filter of days must agree: the first says on which days, the others which of them are left."""
    kept = [
        _from_either_end(rule.weeks, "week", "year", "in"),
        _from_either_end(rule.year_days, "day", "year", "on"),
        _from_either_end(rule.month_days, "day", "month", "on"),
        _weekdays(rule),
    ]
    for number, phrase in enumerate(phrase for phrase in kept if phrase):
        yield f"only {phrase}" if number else phrase


def _from_either_end(values: Sequence[int], unit: str, whole: str, preposition: str) -> str:
    forward, backward = [value for value in values if value > 0], sorted(-value for value in values if value < 0)
    parts = [numbered(forward, _SIZES[unit], unit)] if forward else []
    parts += [words.before_last(value - 1, unit) for value in backward]
    return f"{preposition} {joined(parts)} of the {whole}" if parts else ""


def _weekdays(rule: Rule) -> str:
    plain = [weekday for nth, weekday in rule.weekdays if nth == 0]
    parts = [listed(plain, words.WEEKDAYS)] if plain else []
    special = [_nth_weekday(nth, weekday) for nth, weekday in rule.weekdays if nth]
    whole = "month" if rule.frequency == Frequency.MONTHLY or rule.months else "year"
    return f"on {joined(parts + special)}" + (f" of the {whole}" if special else "") if rule.weekdays else ""


def _nth_weekday(nth: int, weekday: int) -> str:
    name = words.WEEKDAYS[weekday]
    return f"the {ordinal(nth)} {name}" if nth > 0 else words.before_last(-nth - 1, name)


def _times(rule: Rule) -> str:
    if rule.frequency >= Frequency.DAILY:
        return words.of_times(rule.seconds, rule.minutes, rule.hours)
    parts = []
    if rule.frequency == Frequency.HOURLY and rule.minutes == (0,) and rule.seconds == (0,):
        pass  # as "every hour" sounds
    elif rule.minutes:
        parts.append(f"at {numbered(rule.minutes, 60, 'minute')}")
    if rule.seconds and not (rule.frequency >= Frequency.MINUTELY and rule.seconds == (0,)):
        parts.append(f"at {numbered(rule.seconds, 60, 'second')}")
    if rule.hours:
        parts.append(f"in {numbered(rule.hours, 24, 'hour')}")
    return ", ".join(parts)


def _positions(rule: Rule) -> str:
    if not rule.positions:
        return ""
    forward, backward = [value for value in rule.positions if value > 0], sorted(-value for value in rule.positions if value < 0)
    chosen = [ordinal(value) for value in forward] + ["last" if value == 1 else f"{ordinal(value)} last" for value in backward]
    return f"of these only the {joined(chosen)} in each {_UNITS[rule.frequency]}"


def _week_start(rule: Rule) -> str:
    counts = rule.weeks or (rule.frequency == Frequency.WEEKLY and (rule.interval > 1 or rule.positions))
    return f"with weeks from {words.WEEKDAYS[rule.week_start]} on" if rule.week_start and counts else ""


def _bounds(recurrence: Recurrence) -> Iterator[str]:
    if recurrence.rule.start:
        yield f"from {_on_the_wall(recurrence.rule.start)} on"
    if recurrence.count is not None:
        yield counted(recurrence.count, "time")
    if recurrence.last is not None:
        yield f"until {_on_the_wall(recurrence.last)}"
    if recurrence.until is not None:
        yield f"until {words.of_instant(to_datetime(recurrence.until))}"


def _on_the_wall(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(" ")

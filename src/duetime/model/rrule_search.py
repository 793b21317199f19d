"""The next local time of a recurrence rule. The search starts at any point, not at DTSTART, and its work is
bounded."""

from __future__ import annotations

from bisect import bisect_left
from calendar import isleap, monthrange
from collections.abc import Iterable, Iterator
from contextvars import ContextVar, Token
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from functools import lru_cache

from duetime.errors import InvalidWhen
from duetime.model.zone import DAY, LAST

_EPOCH_ORDINAL = 719_163
_LAST_DAY = LAST // DAY
_MONTHS = 12
_END_YEAR = 9999
_WEEK = 7
_UNITS = {0: 1, 1: 60, 2: 3600}


class Frequency(IntEnum):
    SECONDLY = 0
    MINUTELY = 1
    HOURLY = 2
    DAILY = 3
    WEEKLY = 4
    MONTHLY = 5
    YEARLY = 6


# The number of periods before a search gives up. The calendar repeats after 400 years, so 400 years or 4,800
# months are complete.
# Shorter periods cover fifty years or more, which include the rarest day (29 February on a given weekday, at
# most forty years apart).
_MAX_PERIODS = {
    Frequency.SECONDLY: 20_000,
    Frequency.MINUTELY: 20_000,
    Frequency.HOURLY: 20_000,
    Frequency.DAILY: 20_000,
    Frequency.WEEKLY: 6_000,
    Frequency.MONTHLY: 4_800,
    Frequency.YEARLY: 400,
}


class StepBudget:
    """Bounds the steps of all searches inside a `with` block: one search is bounded, but a thousand slow
    ones would take minutes."""

    def __init__(self, steps: int) -> None:
        self._total = self._left = steps
        self._before: Token[StepBudget | None]

    def __enter__(self) -> None:
        self._before = _budget.set(self)

    def __exit__(self, *_: object) -> None:
        _budget.reset(self._before)

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise InvalidWhen(
                "rrule",
                f"finding its fires takes more than {self._total:,} steps: use a longer FREQ, a smaller "
                "COUNT or fewer fires, so that most periods of the rule have a fire",
            )


_budget: ContextVar[StepBudget | None] = ContextVar("rrule_steps", default=None)


def _spend(steps: int) -> None:
    budget = _budget.get()
    if budget is not None:
        budget.spend(steps)


@dataclass(frozen=True, slots=True)
class RecurrenceRule:
    """A rule with its defaults. Weekdays count from Monday = 0, `start` is in local seconds, and empty sets
    allow everything."""

    frequency: Frequency
    interval: int
    start: int
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    months: tuple[int, ...]
    month_days: tuple[int, ...]
    year_days: tuple[int, ...]
    weeks: tuple[int, ...]
    weekdays: tuple[tuple[int, int], ...]
    """Pairs (nth, weekday); nth is 0 for every such weekday."""
    positions: tuple[int, ...]
    week_start: int


class DayFilter:
    """Tells which days of the calendar a rule allows."""

    def __init__(self, rule: RecurrenceRule) -> None:
        self._rule = rule
        self._plain = frozenset(weekday for nth, weekday in rule.weekdays if nth == 0)
        self._nth = frozenset(pair for pair in rule.weekdays if pair[0])
        self._nth_in_month = rule.frequency == Frequency.MONTHLY or bool(rule.months)

    def allows(self, ordinal: int) -> bool:
        rule, day = self._rule, date.fromordinal(ordinal)
        return (
            (not rule.months or day.month in rule.months)
            and (not rule.weekdays or self._weekday_allowed(day))
            and (
                not rule.month_days
                or _either_end(day.day, month_length(day.year, day.month), rule.month_days)
            )
            and (
                not rule.year_days
                or _either_end(
                    ordinal - date(day.year, 1, 1).toordinal() + 1, year_length(day.year), rule.year_days
                )
            )
            and (not rule.weeks or _either_end(*_week(ordinal, day.year, rule.week_start), rule.weeks))
        )

    def candidates(self, year: int, months: Iterable[int]) -> Iterator[int]:
        """The days of these months, or only those that the rule names as days of the year or the month."""
        if self._rule.year_days:
            first = date(year, 1, 1).toordinal()
            yield from _from_either_end(first, year_length(year), self._rule.year_days)
            return
        for month in months:
            first, length = date(year, month, 1).toordinal(), month_length(year, month)
            yield from (
                _from_either_end(first, length, self._rule.month_days)
                if self._rule.month_days
                else range(first, first + length)
            )

    def _weekday_allowed(self, day: date) -> bool:
        weekday = day.weekday()
        if weekday in self._plain:
            return True
        if not self._nth:
            return False
        if self._nth_in_month:
            index, length = day.day - 1, month_length(day.year, day.month)
        else:
            index, length = day.toordinal() - date(day.year, 1, 1).toordinal(), year_length(day.year)
        return (index // 7 + 1, weekday) in self._nth or (
            -((length - 1 - index) // 7) - 1,
            weekday,
        ) in self._nth


class RuleSearch:
    """Finds the first local second of a rule at or after a given one; None if there is none within reach."""

    def __init__(self, rule: RecurrenceRule) -> None:
        self._rule = rule
        self._filter = DayFilter(rule)
        self._filters_days = bool(
            rule.months or rule.month_days or rule.year_days or rule.weeks or rule.weekdays
        )
        self._times = _times(rule)
        self._days_of = lru_cache(maxsize=64)(self._read_days_of)

    def __call__(self, local: int) -> int | None:
        if local >= LAST:
            return None
        local = max(local, self._rule.start)
        if self._rule.frequency <= Frequency.HOURLY:
            return self._within_days(local, _UNITS[self._rule.frequency])
        return self._by_days(local)

    def _by_days(self, local: int) -> int | None:
        period = self._on_grid(self._period_of(local // DAY), self._period_of(self._rule.start // DAY))
        for _ in range(_MAX_PERIODS[self._rule.frequency]):
            _spend(1)
            days = self._days_of(period)
            if days is None:
                return None
            found = self._first_in(days, local)
            if found is not None:
                return found
            period += self._rule.interval
        return None

    def _first_in(self, days: tuple[int, ...], local: int) -> int | None:
        if self._rule.positions:
            chosen = [
                days[index // len(self._times)] * DAY + self._times[index % len(self._times)]
                for index in self._positions(days)
            ]
            return next((moment for moment in chosen if moment >= local), None)
        day, second = divmod(local, DAY)
        index = bisect_left(days, day)
        if index < len(days) and days[index] == day:
            later = bisect_left(self._times, second)
            if later < len(self._times):
                return day * DAY + self._times[later]
            index += 1
        return days[index] * DAY + self._times[0] if index < len(days) else None

    def _positions(self, days: tuple[int, ...]) -> list[int]:
        return _picked(len(days) * len(self._times), self._rule.positions)

    def _within_days(self, local: int, unit: int) -> int | None:
        """For frequencies below a day: their periods are inside a day, so a day that is not allowed is
        skipped as a whole."""
        start = self._rule.start // unit
        period = self._on_grid(local // unit, start)
        for _ in range(_MAX_PERIODS[self._rule.frequency]):
            _spend(1)
            moment = period * unit
            if moment >= LAST:
                return None
            resume = self._blocked_until(moment)
            if resume > moment:
                period = self._on_grid(-(-resume // unit), start)
                continue
            index = bisect_left(self._times, local - moment)
            if index < len(self._times):
                return moment + self._times[index]
            period += self._rule.interval
        return None

    def _blocked_until(self, moment: int) -> int:
        """`moment` itself if its period is allowed, else the next local second to check."""
        rule, day = self._rule, moment // DAY
        if self._filters_days and not self._filter.allows(day + _EPOCH_ORDINAL):
            return (day + 1) * DAY
        if rule.hours and moment // 3600 % 24 not in rule.hours:
            return _resumed(moment, rule.hours, 3600, 24)
        if rule.frequency <= Frequency.MINUTELY and rule.minutes and moment // 60 % 60 not in rule.minutes:
            return _resumed(moment, rule.minutes, 60, 60)
        if rule.frequency == Frequency.SECONDLY and rule.seconds and moment % 60 not in rule.seconds:
            return _resumed(moment, rule.seconds, 1, 60)
        return moment

    def _on_grid(self, period: int, start: int) -> int:
        return start if period <= start else period + (start - period) % self._rule.interval

    def _period_of(self, day: int) -> int:
        match self._rule.frequency:
            case Frequency.DAILY:
                return day
            case Frequency.WEEKLY:
                return (day + _EPOCH_ORDINAL - 1 - self._rule.week_start) // _WEEK
        moment = date.fromordinal(day + _EPOCH_ORDINAL)
        return (
            moment.year
            if self._rule.frequency == Frequency.YEARLY
            else moment.year * _MONTHS + moment.month - 1
        )

    def _read_days_of(self, period: int) -> tuple[int, ...] | None:
        """The allowed days of a period; None after the end of the calendar."""
        match self._rule.frequency:
            case Frequency.DAILY:
                days: Iterable[int] = (period + _EPOCH_ORDINAL,)
                beyond = period >= _LAST_DAY
            case Frequency.WEEKLY:
                first = period * _WEEK + 1 + self._rule.week_start
                days, beyond = range(first, first + _WEEK), first + _WEEK > _LAST_DAY + _EPOCH_ORDINAL
            case Frequency.MONTHLY:
                year, month = divmod(period, _MONTHS)
                days, beyond = self._filter.candidates(year, (month + 1,)), year >= _END_YEAR
            case _:
                days, beyond = (
                    self._filter.candidates(period, self._rule.months or range(1, _MONTHS + 1)),
                    period >= _END_YEAR,
                )
        if beyond:
            return None
        found = list(days)
        _spend(len(found))
        return tuple(sorted({day - _EPOCH_ORDINAL for day in found if self._filter.allows(day)}))


def month_length(year: int, month: int) -> int:
    return monthrange(year, month)[1]


def year_length(year: int) -> int:
    return 366 if isleap(year) else 365


def _times(rule: RecurrenceRule) -> tuple[int, ...]:
    """The seconds of a period at which it fires: of a day for daily and longer frequencies, else of the hour,
    minute or second."""
    hours = rule.hours if rule.frequency >= Frequency.DAILY else (0,)
    minutes = rule.minutes if rule.frequency >= Frequency.HOURLY else (0,)
    seconds = rule.seconds if rule.frequency >= Frequency.MINUTELY else (0,)
    times = [hour * 3600 + minute * 60 + second for hour in hours for minute in minutes for second in seconds]
    if rule.frequency <= Frequency.HOURLY and rule.positions:
        return tuple(times[index] for index in _picked(len(times), rule.positions))
    return tuple(times)


def _resumed(moment: int, allowed: tuple[int, ...], unit: int, size: int) -> int:
    """The beginning of the next allowed hour, minute or second, at the latest the end of its day, hour or
    minute."""
    cycle = moment // (unit * size)
    index = bisect_left(allowed, moment // unit % size)
    return (cycle * size + (allowed[index] if index < len(allowed) else size)) * unit


def _picked(size: int, positions: tuple[int, ...]) -> list[int]:
    """BYSETPOS as indexes: 1 is the first of a period, -1 its last."""
    return sorted(
        {position - 1 if position > 0 else size + position for position in positions if abs(position) <= size}
    )


def _either_end(number: int, size: int, wanted: tuple[int, ...]) -> bool:
    return number in wanted or number - size - 1 in wanted


def _from_either_end(first: int, length: int, numbers: tuple[int, ...]) -> list[int]:
    return [first + index for index in _picked(length, numbers)]


def _week(ordinal: int, year: int, week_start: int) -> tuple[int, int]:
    """The week number of a day, and the number of weeks in the year that the week belongs to."""
    first = _first_week(year, week_start)
    if ordinal < first:
        year, first = year - 1, _first_week(year - 1, week_start)
    following = _first_week(year + 1, week_start)
    if ordinal >= following:
        first, following = following, _first_week(year + 2, week_start)
    return (ordinal - first) // _WEEK + 1, (following - first) // _WEEK


def _first_week(year: int, week_start: int) -> int:
    """The first day of week 1, which is the week of 4 January."""
    fourth = date(year, 1, 4).toordinal()
    return fourth - (fourth - 1 - week_start) % _WEEK

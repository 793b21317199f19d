"""The next local time that matches a cron pattern. It uses only integers and tables, so that a million
schedules are cheap."""

from __future__ import annotations

from calendar import isleap
from datetime import date
from functools import lru_cache

from duetime.errors import InvalidWhen, NeverFires
from duetime.model import cron
from duetime.model.cron import Pattern
from duetime.model.zone import DAY, LAST

_EPOCH_ORDINAL = 719_163
_LAST_DAY = LAST // DAY
_LENGTHS = {1: 31, 2: 28, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31}
# The rarest day, 29 February on a given weekday, comes again within forty years.
_MONTHS_AHEAD = 12 * 50


class CronSearch:
    """Finds the first matching local second at or after a given one."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._seconds = _following(pattern.seconds, 60)
        self._minutes = _following(pattern.minutes, 60)
        self._hours = _following(pattern.hours, 24)
        self._months = frozenset(pattern.months)
        self._first_second = pattern.seconds[0]
        self._first_of_hour = pattern.minutes[0] * 60 + self._first_second
        self._first = pattern.hours[0] * 3600 + self._first_of_hour
        self._day_masks: dict[tuple[int, int], int] = {}
        whole_month, whole_week = len(pattern.month_days) == 31, len(pattern.weekdays) == 7
        whole = (whole_month or whole_week) if pattern.either_day else (whole_month and whole_week)
        self._every_day = whole and len(self._months) == 12

    def __call__(self, local: int) -> int | None:
        day, second = divmod(local, DAY)
        following = day if self._every_day else self._next_day(day)
        if following == day:
            hour, second = divmod(second, 3600)
            minute, second = divmod(second, 60)
            if self._hours[hour] == hour:
                if self._minutes[minute] == minute:
                    found = self._seconds[second]
                    if found < 60:
                        return day * DAY + hour * 3600 + minute * 60 + found
                found = self._minutes[minute + 1]
                if found < 60:
                    return day * DAY + hour * 3600 + found * 60 + self._first_second
            found = self._hours[hour + 1]
            if found < 24:
                return day * DAY + found * 3600 + self._first_of_hour
            following = self._next_day(day + 1)
        return None if following is None else following * DAY + self._first

    def ever_fires(self) -> bool:
        """Exact, because every month begins on every weekday in some year, and so does February in both
        lengths."""
        lengths = {
            length for month in self._months for length in ((28, 29) if month == 2 else (_LENGTHS[month],))
        }
        return any(self._days_of(length, first_weekday) for length in lengths for first_weekday in range(7))

    def _next_day(self, day: int) -> int | None:
        if day >= _LAST_DAY:
            return None
        if self._every_day:
            return day
        start = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month, passed = start.year, start.month, start.day
        for _ in range(_MONTHS_AHEAD):
            if month in self._months:
                ahead, first = self._days_from(year, month, passed)
                if ahead:
                    return first + (ahead & -ahead).bit_length() - 2 + passed
            year, month, passed = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
            if year > 9998:
                return None
        return None

    def _days_from(self, year: int, month: int, day: int) -> tuple[int, int]:
        """The matching days of a month from `day` on, lowest bit first, and the number of the month's first
        day."""
        ordinal = date(year, month, 1).toordinal()
        length = 29 if month == 2 and isleap(year) else _LENGTHS[month]
        return self._days_of(length, ordinal % 7) >> day, ordinal - _EPOCH_ORDINAL

    def _days_of(self, length: int, first_weekday: int) -> int:
        mask = self._day_masks.get((length, first_weekday))
        if mask is None:
            mask = self._day_masks[length, first_weekday] = _day_mask(self.pattern, length, first_weekday)
        return mask


def compiled(expression: str, key: str) -> CronSearch:
    """The search for an expression. Rejects one that never fires."""
    if not isinstance(expression, str):
        raise InvalidWhen("cron", f"{expression!r} is not text: write it like '0 9 * * MON-FRI'")
    return _compiled(expression, key)


@lru_cache(maxsize=16_384)  # expressions with H differ for every schedule; each takes 3 KB
def _compiled(expression: str, key: str) -> CronSearch:
    search = CronSearch(cron.parse(expression, key))
    if not search.ever_fires():
        raise NeverFires(
            "cron",
            f"{expression!r} never fires: no month it names has such a day; check day of month and month",
        )
    return search


def _following(values: tuple[int, ...], size: int) -> tuple[int, ...]:
    """At each index the first value at or after it, or `size` if there is none. One entry more than the field
    has values."""
    table, nearest = [size], size
    for number in range(size - 1, -1, -1):
        nearest = number if number in values else nearest
        table.append(nearest)
    return tuple(reversed(table))


def _day_mask(pattern: Pattern, length: int, first_weekday: int) -> int:
    """Bit n is set if day n matches, in a month of this length that begins on this weekday."""
    month_days = [day for day in pattern.month_days if day <= length]
    month_days += [length - offset for offset in pattern.last_offsets if offset < length]
    workdays = [*pattern.nearest_workdays, *(length - offset for offset in pattern.last_workday_offsets)]
    month_days += [_nearest_workday(day, length, first_weekday) for day in workdays if 1 <= day <= length]
    weekdays = [day for day in range(1, length + 1) if (first_weekday + day - 1) % 7 in pattern.weekdays]
    weekdays += [
        day for weekday, nth in pattern.nth_weekdays if (day := _nth(weekday, nth, first_weekday)) <= length
    ]
    weekdays += [_last(weekday, length, first_weekday) for weekday in pattern.last_weekdays]
    by_month, by_week = _bits(month_days), _bits(weekdays)
    return by_month | by_week if pattern.either_day else by_month & by_week


def _nearest_workday(day: int, length: int, first_weekday: int) -> int:
    match (first_weekday + day - 1) % 7:
        case 6:
            return day - 1 if day > 1 else day + 2
        case 0:
            return day + 1 if day < length else day - 2
    return day


def _nth(weekday: int, nth: int, first_weekday: int) -> int:
    return 1 + (weekday - first_weekday) % 7 + 7 * (nth - 1)


def _last(weekday: int, length: int, first_weekday: int) -> int:
    return length - (first_weekday + length - 1 - weekday) % 7


def _bits(days: list[int]) -> int:
    mask = 0
    for day in days:
        mask |= 1 << day
    return mask

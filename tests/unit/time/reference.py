"""A second opinion on cron, slow and plain: it walks real time through zoneinfo and shares no code and no
idea with the product.

Days are judged by definition (the last day is the one whose morrow is in another month), times by looking at
every minute or second. Fixed times remember which local minutes have been seen: a minute seen before does not
fire again, a minute skipped fires on landing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

ONE_DAY, TWO_DAYS = timedelta(days=1), timedelta(days=2)
# No name is both a month and a weekday, so one table serves both.
NAMES = {
    name: number
    for number, name in enumerate(
        ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"), 1
    )
}
NAMES |= {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = EPOCH.date()


@cache
def numbers(text: str, low: int, high: int) -> set[int]:
    """The plain values of a field; specials such as L are judged elsewhere and are left out here."""
    found: set[int] = set()
    for item in text.split(","):
        body, _, step = item.partition("/")
        if body in ("*", "?"):
            first, last = low, high
        else:
            parts = body.split("-")
            if not all(part in NAMES or part.isdigit() for part in parts):
                continue
            ends = [NAMES[part] if part in NAMES else int(part) for part in parts]
            first = ends[0]
            last = ends[-1] if len(ends) > 1 or not step else high
        value = first
        for distance in range(high - low + 2):
            if distance % int(step or 1) == 0:
                found.add(value)
            if value == last:
                break
            value = low if value == high else value + 1
    return found


def is_workday(day: date) -> bool:
    return day.weekday() < 5


def last_of_month(day: date) -> date:
    while (day + ONE_DAY).month == day.month:
        day += ONE_DAY
    return day


def nearest_workday(target: date) -> date:
    """The workday of the same month with the fewest days between; of two, the only possible one within a
    weekend's reach."""
    around = [target + timedelta(days=distance) for distance in (0, -1, 1, -2, 2)]
    return next(day for day in around if day.month == target.month and is_workday(day))


def special_month_day(item: str, day: date) -> bool:
    if item.startswith("L"):
        offset = item.strip("LW").removeprefix("-")
        target = last_of_month(day) - timedelta(days=int(offset or 0))
    elif item.endswith("W"):
        if int(item[:-1]) > last_of_month(day).day:
            return False
        target = day.replace(day=int(item[:-1]))
    else:
        return False
    return target.month == day.month and day == (nearest_workday(target) if item.endswith("W") else target)


def special_weekday(item: str, day: date) -> bool:
    name, sharp, count = item.partition("#")
    if not sharp and not item.endswith("L"):
        return False
    name = name.removesuffix("L") if not sharp else name
    wanted = (NAMES[name] if name in NAMES else int(name)) % 7
    if day.isoweekday() % 7 != wanted:
        return False
    return (day + 7 * ONE_DAY).month != day.month if not sharp else (day.day + 6) // 7 == int(count)


@dataclass(frozen=True)
class Expression:
    """One cron expression, taken apart by its text alone."""

    text: str

    @property
    def fields(self) -> list[str]:
        fields = self.text.split()
        return fields if len(fields) == 6 else ["0", *fields]

    @property
    def fixed(self) -> bool:
        return self.fields[1][0] not in "*?" and self.fields[2][0] not in "*?"

    def day_matches(self, day: date) -> bool:
        _, _, _, month_day, month, weekday = self.fields
        if day.month not in numbers(month, 1, 12):
            return False
        by_month = day.day in numbers(month_day, 1, 31) or any(
            special_month_day(item, day) for item in month_day.split(",")
        )
        # Sunday is 0 and 7; a range that ends in 7 is read on the scale 0-7, one that goes over the end on
        # the scale 0-6.
        values = numbers(weekday, 0, 7 if "-7" in weekday else 6) if weekday != "7" else {0}
        by_week = day.isoweekday() % 7 in {value % 7 for value in values} or any(
            special_weekday(item, day) for item in weekday.split(",")
        )
        either = month_day[0] not in "*?" and weekday[0] not in "*?"
        return by_month or by_week if either else by_month and by_week

    def seconds_of_day(self) -> frozenset[int]:
        second, minute, hour, *_ = self.fields
        hours, minutes, seconds = numbers(hour, 0, 23), numbers(minute, 0, 59), numbers(second, 0, 59)
        return frozenset(h * 3600 + m * 60 + s for h in hours for m in minutes for s in seconds)


@cache
def clock_of(expression: Expression) -> frozenset[int]:
    return expression.seconds_of_day()


@lru_cache(maxsize=100_000)
def day_of(expression: Expression, day: date) -> bool:
    return expression.day_matches(day)


def offset_at(zone: ZoneInfo, instant: int) -> int:
    offset = (EPOCH + timedelta(seconds=instant)).astimezone(zone).utcoffset()
    assert offset is not None
    return offset.days * 86_400 + offset.seconds


@cache
def looks(first_year: int, last_year: int) -> list[datetime]:
    """Every second day: no two changes are that close."""
    start, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    return [start + number * TWO_DAYS for number in range((end - start) // TWO_DAYS + 2)]


def transitions(zone: ZoneInfo, first_year: int, last_year: int) -> list[int]:
    """Every instant at which the offset from UTC changes: between looks that differ, closing in on it."""
    found = []
    seen = looks(first_year, last_year)
    offsets = [moment.astimezone(zone).utcoffset() for moment in seen]
    for number, (before, after) in enumerate(pairwise(offsets)):
        if before != after:
            low, high = int(seen[number].timestamp()), int(seen[number + 1].timestamp())
            offset = offset_at(zone, low)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset_at(zone, middle) == offset else (low, middle)
            found.append(high)
    return found


Index = dict[int, list[tuple[int, date]]]
"""Second of the local day -> the instants that stand for it, each with its local date."""


@dataclass(frozen=True)
class Walk:
    """Real time between two instants, minute by minute: `real` has every local time that came, `fixed` each
    local time exactly once."""

    real: Index
    fixed: Index

    def fires(self, expression: Expression) -> list[int]:
        index = self.fixed if expression.fixed else self.real
        times = clock_of(expression) & index.keys()
        return sorted({instant for time in times for instant, day in index[time] if day_of(expression, day)})


def walk(zone: ZoneInfo, start: int, end: int, changes: list[int], step: int = 60) -> Walk:
    """`changes` are the transitions between start and end: the walk stops at each, so that no local minute
    goes unseen."""
    real: Index = {}
    fixed: Index = {}
    seen, expected = -(1 << 60), None
    for instant, local in _steps(zone, start, end, changes, step):
        _note(real, instant, local)
        for passed in range(expected if expected is not None else local, local, step):
            if passed > seen:
                _note(fixed, instant, passed)
        if local > seen:
            _note(fixed, instant, local)
        seen, expected = max(seen, local), local + step
    return Walk(real, fixed)


def _note(index: Index, instant: int, local: int) -> None:
    days, second = divmod(local, 86_400)
    index.setdefault(second, []).append((instant, _day(days)))


@cache
def _day(number: int) -> date:
    return EPOCH_DAY + timedelta(days=number)


def _steps(zone: ZoneInfo, start: int, end: int, changes: list[int], step: int) -> Iterator[tuple[int, int]]:
    instant, ahead = start, [*changes, end + step]
    while instant < end:
        while ahead[0] < instant:
            ahead.pop(0)
        local = instant + offset_at(zone, instant)
        if local % step == 0 or instant == ahead[0]:
            yield instant, local
        following = instant + step - local % step
        instant = min(following, ahead[0]) if instant < ahead[0] else min(following, ahead[1])

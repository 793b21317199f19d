"""The cron language: five fields, or six with seconds first, parsed into the sets that `cron_search` uses.

`*` and `?` match any value. There are lists, ranges (also across the end: `22-2`, `FRI-MON`), steps, names of
months and days; `L`, `L-3`, `LW`, `L-3W`, `15W` for days of the month; `5L`, `5#3` for days of the week; `H`,
`H(1-5)`, `H/15` for a value that is stable per key; and macros like `@daily`.
"""

from __future__ import annotations

from calendar import isleap
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from hashlib import blake2b

from duetime.errors import InvalidWhen, NeverFires
from duetime.model.zone import DAY, LAST

MAX_EXPRESSION = 256
MAX_ITEMS = 64
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True)
class CronField:
    """The values of one position of the expression. `spread` is the range of `H`."""

    name: str
    low: int
    high: int
    spread: tuple[int, int]
    allowed: str
    names: dict[str, int] = field(default_factory=dict, hash=False)

    @property
    def width(self) -> int:
        return 7 if self is DAY_OF_WEEK else self.high - self.low + 1


SECOND = CronField("second", 0, 59, (0, 59), "0-59")
MINUTE = CronField("minute", 0, 59, (0, 59), "0-59")
HOUR = CronField("hour", 0, 23, (0, 23), "0-23")
# A hashed day is one that every month has.
DAY_OF_MONTH = CronField("day of month", 1, 31, (1, 28), "1-31, L, L-3, LW, 15W")
MONTH = CronField(
    "month", 1, 12, (1, 12), "1-12 or JAN-DEC", {name: number for number, name in enumerate(MONTHS, 1)}
)
DAY_OF_WEEK = CronField(
    "day of week",
    0,
    7,
    (0, 6),
    "0-7 (0 and 7 are Sunday) or SUN-SAT, 5L, 5#3",
    {name: number for number, name in enumerate(WEEKDAYS)},
)
FIELDS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)


@dataclass(frozen=True, slots=True)
class Pattern:
    """An expression as sets. Weekdays count from Sunday = 0. Offsets count back from the last day of the
    month."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    month_days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    last_offsets: tuple[int, ...]
    last_workday_offsets: tuple[int, ...]
    nearest_workdays: tuple[int, ...]
    nth_weekdays: tuple[tuple[int, int], ...]
    last_weekdays: tuple[int, ...]
    either_day: bool
    """Day of month OR day of week: if neither field begins with `*`."""
    fixed_time: bool
    """Neither minute nor hour begins with `*`: a clock change neither drops nor repeats a fire."""
    hashed: bool


@dataclass(slots=True)
class _Reading:
    """The values of one field that have been read so far."""

    kind: CronField
    text: str
    key: str
    values: set[int] = field(default_factory=set)
    last_offsets: set[int] = field(default_factory=set)
    last_workday_offsets: set[int] = field(default_factory=set)
    nearest_workdays: set[int] = field(default_factory=set)
    nth_weekdays: set[tuple[int, int]] = field(default_factory=set)
    last_weekdays: set[int] = field(default_factory=set)

    @property
    def starred(self) -> bool:
        return self.text.startswith(("*", "?"))

    def refuse(self, item: str, reason: str) -> InvalidWhen:
        allowed = f"{self.kind.name} takes {self.kind.allowed}, lists, ranges and steps"
        return InvalidWhen("cron", f"{self.kind.name} {item!r} {reason}: {allowed}")


def split(expression: str) -> list[str]:
    """The six field texts of an expression, macros expanded and seconds filled in."""
    if len(expression) > MAX_EXPRESSION:
        raise InvalidWhen(
            "cron", f"the expression has {len(expression)} characters: the maximum is {MAX_EXPRESSION}"
        )
    if not expression.isascii():
        raise InvalidWhen(
            "cron", f"{expression!r} has characters outside ASCII: write plain digits and names"
        )
    texts = expression.upper().split()
    if texts and texts[0].startswith("@"):
        texts = _expand_macro(texts)
    match len(texts):
        case 6:
            return texts
        case 5:
            return ["0", *texts]
    wanted = "5 (minute, hour, day of month, month, day of week) or 6 with seconds first"
    raise InvalidWhen(
        "cron", f"{expression!r} has {len(texts)} {'field' if len(texts) == 1 else 'fields'}: write {wanted}"
    )


def parse(expression: str, key: str = "") -> Pattern:
    """The sets of an expression. `key` decides where `H` falls."""
    second, minute, hour, month_day, month, weekday = (
        _read_field(kind, text, key) for kind, text in zip(FIELDS, split(expression), strict=True)
    )
    return Pattern(
        seconds=tuple(sorted(second.values)),
        minutes=tuple(sorted(minute.values)),
        hours=tuple(sorted(hour.values)),
        month_days=tuple(sorted(month_day.values)),
        months=tuple(sorted(month.values)),
        weekdays=tuple(sorted(weekday.values)),
        last_offsets=tuple(sorted(month_day.last_offsets)),
        last_workday_offsets=tuple(sorted(month_day.last_workday_offsets)),
        nearest_workdays=tuple(sorted(month_day.nearest_workdays)),
        nth_weekdays=tuple(sorted(weekday.nth_weekdays)),
        last_weekdays=tuple(sorted(weekday.last_weekdays)),
        either_day=not (month_day.starred or weekday.starred),
        fixed_time=not (minute.starred or hour.starred),
        hashed=any(
            "H" in item.split("(")[0].split("/") for text in split(expression) for item in text.split(",")
        ),
    )


def _expand_macro(texts: list[str]) -> list[str]:
    expanded = MACROS.get(texts[0].lower())
    if expanded is None or len(texts) > 1:
        known = ", ".join([*MACROS, "@every 10s"])
        raise InvalidWhen("cron", f"{' '.join(texts).lower()!r} is unknown: use one of {known}")
    return expanded.split()


def _read_field(kind: CronField, text: str, key: str) -> _Reading:
    reading = _Reading(kind, text, key)
    items = text.split(",")
    if len(items) > MAX_ITEMS:
        raise InvalidWhen("cron", f"{kind.name} lists {len(items)} items: the maximum is {MAX_ITEMS}")
    for item in items:
        if not _read_special(reading, item):
            reading.values.update(_read_plain(reading, item))
    return reading


def _read_special(reading: _Reading, item: str) -> bool:
    if reading.kind is DAY_OF_MONTH and (item.startswith("L") or item.endswith("W")):
        _read_special_month_day(reading, item)
        return True
    if reading.kind is DAY_OF_WEEK and ("#" in item or item.endswith("L")):
        _read_special_weekday(reading, item)
        return True
    return False


def _read_special_month_day(reading: _Reading, item: str) -> None:
    body = item.removesuffix("W")
    if not body.startswith("L"):
        reading.nearest_workdays.add(_number(reading, item, body))
        return
    offset = 0
    if body != "L":
        offset = _digits(reading, item, body[2:]) if body.startswith("L-") else -1
        if not 0 <= offset <= 30:
            raise reading.refuse(item, "is invalid; L-n counts at most 30 days back")
    (reading.last_workday_offsets if item.endswith("W") else reading.last_offsets).add(offset)


def _read_special_weekday(reading: _Reading, item: str) -> None:
    if item == "L":
        raise reading.refuse(item, "names no day; write 5L for the last Friday of the month")
    name, sharp, count = item.partition("#")
    if not sharp:
        reading.last_weekdays.add(_number(reading, item, item[:-1]) % 7)
        return
    nth = _digits(reading, item, count)
    if not 1 <= nth <= 5:
        raise reading.refuse(item, "is a week that no month has; use #1 to #5")
    reading.nth_weekdays.add((_number(reading, item, name) % 7, nth))


def _read_plain(reading: _Reading, item: str) -> list[int]:
    body, slash, step_text = item.partition("/")
    step = _digits(reading, item, step_text) if slash else 1
    if not 1 <= step <= reading.kind.width:
        raise reading.refuse(item, f"has a step outside 1-{reading.kind.width}")
    if body.startswith("H"):
        return _spread(reading, item, body, step if slash else 0)
    start, end = _bounds(reading, item, body, open_ended=bool(slash))
    return _walk(reading.kind, start, end, step)


def _bounds(reading: _Reading, item: str, body: str, *, open_ended: bool) -> tuple[int, int]:
    if body in ("*", "?"):
        return reading.kind.low, reading.kind.low + reading.kind.width - 1
    first, dash, last = body.partition("-")
    start = _number(reading, item, first)
    if dash:
        return start, _number(reading, item, last)
    if not open_ended:
        return start, start
    return start % 7 if reading.kind is DAY_OF_WEEK else start, reading.kind.low + reading.kind.width - 1


def _walk(kind: CronField, start: int, end: int, step: int) -> list[int]:
    """The values from start to end. If end is before start, the range continues past the last value."""
    length = end - start if end >= start else end - start + kind.width
    return [(start - kind.low + distance) % kind.width + kind.low for distance in range(0, length + 1, step)]


def _spread(reading: _Reading, item: str, body: str, step: int) -> list[int]:
    low, high = reading.kind.spread
    if body != "H":
        if not (body.startswith("H(") and body.endswith(")") and "-" in body):
            raise reading.refuse(item, "is invalid; write H, H(1-5) or H/15")
        low, high = _bounds(reading, item, body[2:-1], open_ended=False)
        if low > high or high > reading.kind.low + reading.kind.width - 1:
            raise reading.refuse(item, "ends before it starts")
    seed = blake2b(f"{reading.kind.name}\0{reading.key}".encode(), digest_size=8).digest()
    offset = int.from_bytes(seed, "big") % min(step or high - low + 1, high - low + 1)
    return list(range(low + offset, high + 1, step)) if step else [low + offset]


def _number(reading: _Reading, item: str, text: str) -> int:
    named = reading.kind.names.get(text)
    number = _digits(reading, item, text) if named is None else named
    if not reading.kind.low <= number <= reading.kind.high:
        raise reading.refuse(item, f"is outside {reading.kind.low}-{reading.kind.high}")
    return number


def _digits(reading: _Reading, item: str, text: str) -> int:
    if not text.isdigit() or len(text) > 9:
        raise reading.refuse(item, "is invalid" if item else "is empty")
    return int(text)


# The next local time that matches a cron pattern. It uses only integers and tables, so that a million
# schedules are cheap.


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
    search = CronSearch(parse(expression, key))
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

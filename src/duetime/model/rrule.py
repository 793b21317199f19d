"""RFC 5545 recurrence rules: one RRULE with an optional DTSTART line, parsed into the sets that
`rrule_search` uses.

The rule is evaluated in the local time of its zone. Without DTSTART it starts at 1970-01-01T00:00:00 local
time. DTSTART itself fires only if it matches. COUNT needs DTSTART: it counts fires from there, which over a
clock change are not as many as matching local times. With a date as DTSTART the rule fires at midnight, and
BYHOUR, BYMINUTE and BYSECOND are ignored. A date as UNTIL includes that whole day; an UNTIL with `Z` is an
instant. No clock here has leap seconds: second 60 is second 59.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from duetime.errors import InvalidWhen, NeverFires
from duetime.model import zone
from duetime.model.rrule_search import Frequency, RecurrenceRule, RuleSearch, StepBudget
from duetime.model.zone import DAY, LocalTimes, Search, Zone

MAX_TEXT = 2_048
MAX_ITEMS = 366
MAX_COUNT = 10_000
MAX_INTERVAL = 1_000_000
MAX_STEPS = 200_000  # to find the last fire of a COUNT
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_RANGES = {
    "BYSECOND": (0, 60),
    "BYMINUTE": (0, 59),
    "BYHOUR": (0, 23),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (1, 31),
    "BYYEARDAY": (1, 366),
    "BYWEEKNO": (1, 53),
    "BYSETPOS": (1, 366),
}
_FROM_EITHER_END = ("BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS")
_PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_RANGES)
_REMEDY = "write it like 'FREQ=WEEKLY;BYDAY=MO,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0'"
# RFC 5545 folds long lines. An indented line that begins a property is no continuation.
_FOLD = re.compile(r"\r?\n[ \t]+(?!\s*(?:RRULE:|FREQ=|DTSTART[:;]))", re.IGNORECASE)
_QUOTED = re.compile(r'"([^"]*)"')
_TIME_PARTS = ("BYHOUR", "BYMINUTE", "BYSECOND")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local times have no zone of their own


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule in its zone, with its text."""

    text: str
    zone: Zone
    rule: RecurrenceRule
    count: int | None
    until: int | None  # the last instant, in microseconds, if UNTIL is one or COUNT counts to it
    last: int | None  # the last local second, if UNTIL is a local time
    search: Search  # matching local seconds, up to `last`
    _next: Callable[[int], int | None]

    @property
    def fixed(self) -> bool:
        """Has fixed times, as opposed to following real time."""
        return self.rule.frequency >= Frequency.DAILY

    def next_us(self, after: int) -> int | None:
        found = self._next(after)
        return found if found is None or self.until is None or found <= self.until else None


@dataclass(frozen=True, slots=True)
class _Moment:
    """A date-time of RFC 5545: local seconds, and whether they are UTC."""

    seconds: int
    utc: bool
    date_only: bool


def compiled(text: str, tz: str) -> Recurrence:
    """The recurrence of a text. Rejects one that never fires."""
    place = zone.load(tz)
    if not isinstance(text, str):
        raise _refuse(f"{text!r} is not text")
    if len(text) > MAX_TEXT:
        raise _refuse(f"the rule has {len(text)} characters, the maximum is {MAX_TEXT}")
    return _compiled(text, place)


@lru_cache(maxsize=1024)
def _compiled(text: str, place: Zone) -> Recurrence:
    lines = [line.strip() for line in _FOLD.sub("", text.strip()).splitlines() if line.strip()]
    start_line, rule_line = _lines(lines)
    place, start, date_only = _read_start(start_line, place)
    parts = _read_parts(rule_line.upper().removeprefix("RRULE:"))
    if date_only:
        parts = {name: value for name, value in parts.items() if name not in _TIME_PARTS}
    if "COUNT" in parts and not start_line:
        raise _refuse("COUNT counts from a DTSTART line: add one, such as 'DTSTART:20300101T090000'")
    rule = _read_rule(parts, start)
    count = _read_number(parts["COUNT"], "COUNT", 1, MAX_COUNT) if "COUNT" in parts else None
    until, last = _read_until(parts)
    search: Search = RuleSearch(rule) if last is None else _bounded(RuleSearch(rule), last)
    times = LocalTimes(place, search, rule.frequency >= Frequency.DAILY)
    before = (start - 2 * DAY) * 1_000_000
    with StepBudget(MAX_STEPS):
        if count is not None:
            until = _last_counted(times, before, count)
        recurrence = Recurrence("\n".join(lines), place, rule, count, until, last, search, times.next_us)
        first = recurrence.next_us(before)
    if first is None:
        raise NeverFires(
            "rrule",
            f"{rule_line!r} never fires: check its BY parts against each other, and DTSTART against UNTIL",
        )
    return recurrence


def _lines(lines: list[str]) -> tuple[str, str]:
    match lines:
        case [rule]:
            return "", rule
        case [start, rule] if start.upper().startswith("DTSTART"):
            return start, rule
    raise _refuse(
        f"it has {len(lines)} lines: write one RRULE line, and at most one DTSTART line before it; "
        "lines such as EXDATE and RDATE are not supported"
    )


def _read_start(line: str, place: Zone) -> tuple[Zone, int, bool]:
    """The zone of the rule, its first local second, and whether only a date was given."""
    if not line:
        return place, 0, False
    names, colon, value = line.partition(":")
    for parameter in names.split(";")[1:]:
        name, _, setting = parameter.partition("=")
        if name.upper() == "TZID":
            place = _agreed(place, _QUOTED.sub(r"\1", setting))
        elif parameter.upper() not in ("VALUE=DATE-TIME", "VALUE=DATE"):
            raise _refuse(f"DTSTART parameter {parameter!r} is unknown")
    if not colon:
        raise _refuse(f"DTSTART line {line!r} has no value")
    moment = _read_moment("DTSTART", value.strip().upper())
    seconds = place.local(moment.seconds) if moment.utc else moment.seconds
    return place, seconds, moment.date_only


def _agreed(place: Zone, name: str) -> Zone:
    if place.name not in ("UTC", name):
        raise _refuse(f"DTSTART has TZID={name} but tz is {place.name}: give only one of them")
    return zone.load(name)


def _read_moment(part: str, text: str) -> _Moment:
    digits = text.removesuffix("Z").replace("T", "", 1)
    if not (
        text.isascii()
        and digits.isdigit()
        and len(text.removesuffix("Z")) in (8, 15)
        and text[8:9] in ("", "T")
    ):
        raise _refuse(
            f"{part} {text!r} is not a date-time: write it like 20300101T090000 or 20300101T090000Z"
        )
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
    clock = digits[8:] or "000000"
    try:
        hour, minute, second = int(clock[:2]), int(clock[2:4]), _usual_second(int(clock[4:]))
        moment = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - see _EPOCH
    except ValueError as problem:
        raise _refuse(f"{part} {text!r} is not in the calendar") from problem
    if not _EPOCH <= moment < datetime(9998, 12, 1):  # noqa: DTZ001 - see _EPOCH
        raise _refuse(f"{part} {text!r} is out of range: use a date from 1970 up to 9998")
    return _Moment(
        (moment - _EPOCH) // timedelta(seconds=1), text.endswith("Z"), len(digits) == len("YYYYMMDD")
    )


def _read_parts(line: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in line.rstrip(";").split(";"):
        name, _, value = part.partition("=")
        if name not in _PARTS:
            raise _refuse(f"part {name!r} is unknown")
        if name in parts:
            raise _refuse(f"part {name} is given twice")
        parts[name] = value
    return parts


def _read_rule(parts: dict[str, str], start: int) -> RecurrenceRule:
    frequency = _read_frequency(parts)
    weekdays = _read_weekdays(parts.get("BYDAY"))
    _check_combinations(parts, frequency, weekdays)
    by = {name: _read_numbers(name, parts[name]) for name in _RANGES if name in parts}
    began = date.fromordinal(start // DAY + 719_163)
    if not weekdays and not by.keys() & {"BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"}:
        match frequency:
            case Frequency.YEARLY:
                by = {"BYMONTH": (began.month,), "BYMONTHDAY": (began.day,)} | by
            case Frequency.MONTHLY:
                by["BYMONTHDAY"] = (began.day,)
            case Frequency.WEEKLY:
                weekdays = ((0, began.weekday()),)
    return RecurrenceRule(
        frequency=frequency,
        interval=_read_number(parts.get("INTERVAL", "1"), "INTERVAL", 1, MAX_INTERVAL),
        start=start,
        hours=by.get("BYHOUR", (start // 3600 % 24,) if frequency >= Frequency.DAILY else ()),
        minutes=by.get("BYMINUTE", (start // 60 % 60,) if frequency >= Frequency.HOURLY else ()),
        seconds=by.get("BYSECOND", (start % 60,) if frequency >= Frequency.MINUTELY else ()),
        months=by.get("BYMONTH", ()),
        month_days=by.get("BYMONTHDAY", ()),
        year_days=by.get("BYYEARDAY", ()),
        weeks=by.get("BYWEEKNO", ()),
        weekdays=weekdays,
        positions=by.get("BYSETPOS", ()),
        week_start=_read_weekday(parts.get("WKST", "MO"), "WKST"),
    )


def _read_frequency(parts: dict[str, str]) -> Frequency:
    if parts.get("FREQ") not in Frequency.__members__:
        raise _refuse(f"FREQ must be one of {', '.join(Frequency.__members__)}")
    return Frequency[parts["FREQ"]]


def _check_combinations(
    parts: dict[str, str], frequency: Frequency, weekdays: tuple[tuple[int, int], ...]
) -> None:
    """Rejects combinations that RFC 5545 forbids."""
    if "COUNT" in parts and "UNTIL" in parts:
        raise _refuse("COUNT and UNTIL cannot be combined")
    if "BYWEEKNO" in parts and frequency != Frequency.YEARLY:
        raise _refuse("BYWEEKNO needs FREQ=YEARLY")
    if "BYYEARDAY" in parts and frequency in (Frequency.DAILY, Frequency.WEEKLY, Frequency.MONTHLY):
        raise _refuse("BYYEARDAY cannot be combined with FREQ=DAILY, WEEKLY or MONTHLY")
    if "BYMONTHDAY" in parts and frequency == Frequency.WEEKLY:
        raise _refuse("BYMONTHDAY cannot be combined with FREQ=WEEKLY")
    numbered = any(nth for nth, _ in weekdays)
    if numbered and (frequency < Frequency.MONTHLY or "BYWEEKNO" in parts):
        raise _refuse("BYDAY with a number needs FREQ=MONTHLY or YEARLY, without BYWEEKNO")
    if "BYSETPOS" in parts and not parts.keys() & (_RANGES.keys() - {"BYSETPOS"} | {"BYDAY"}):
        raise _refuse("BYSETPOS needs another BY part to choose from")


def _read_until(parts: dict[str, str]) -> tuple[int | None, int | None]:
    """The last instant (in microseconds) or the last local second of the rule, if it has one."""
    if "UNTIL" not in parts:
        return None, None
    moment = _read_moment("UNTIL", parts["UNTIL"])
    if moment.utc:
        return moment.seconds * 1_000_000, None
    return None, moment.seconds + (DAY - 1 if moment.date_only else 0)


def _last_counted(times: LocalTimes, before: int, count: int) -> int:
    last = before
    for _ in range(count):
        found = times.next_us(last)
        if found is None:
            break
        last = found
    return last


def _bounded(search: RuleSearch, last: int) -> Search:
    def within(local: int) -> int | None:
        found = search(local) if local <= last else None
        return found if found is not None and found <= last else None

    return within


def _read_numbers(name: str, text: str) -> tuple[int, ...]:
    items = text.split(",")
    if len(items) > MAX_ITEMS:
        raise _refuse(f"{name} has {len(items)} items, the maximum is {MAX_ITEMS}")
    low, high = _RANGES[name]
    numbers = {_read_signed(item, name, low, high) for item in items}
    return tuple(sorted({_usual_second(number) for number in numbers} if name == "BYSECOND" else numbers))


def _usual_second(second: int) -> int:
    """RFC 5545, 3.3.12: who has no leap seconds should read 60 as 59."""
    return 59 if second == 60 else second


def _read_signed(text: str, name: str, low: int, high: int) -> int:
    if name not in _FROM_EITHER_END or not text.startswith(("-", "+")):
        return _read_number(text, name, low, high)
    size = _read_number(text[1:], name, low, high)
    return -size if text.startswith("-") else size


def _read_number(text: str, name: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high)) and low <= int(text) <= high):
        raise _refuse(f"{name} {text!r} is not a number from {low} to {high}")
    return int(text)


def _read_weekdays(text: str | None) -> tuple[tuple[int, int], ...]:
    if text is None:
        return ()
    items = text.split(",")
    if len(items) > MAX_ITEMS:
        raise _refuse(f"BYDAY has {len(items)} items, the maximum is {MAX_ITEMS}")
    return tuple(sorted({(_read_nth(item[:-2]), _read_weekday(item[-2:], "BYDAY")) for item in items}))


def _read_nth(text: str) -> int:
    return _read_signed(text, "BYDAY", 1, 53) if text else 0


def _read_weekday(text: str, name: str) -> int:
    if text not in _WEEKDAYS:
        raise _refuse(f"{name} {text!r} is not a weekday: use {', '.join(_WEEKDAYS)}")
    return _WEEKDAYS.index(text)


def _refuse(reason: str) -> InvalidWhen:
    return InvalidWhen("rrule", f"{reason}: {_REMEDY}")

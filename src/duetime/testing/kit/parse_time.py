"""Parses instants as tests write them: "2026-11-16T09:00Z", "2026-11-16 09:00", "Monday 09:00", "09:00"."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from duetime.errors import InvalidInput
from duetime.model import instant, zone
from duetime.model.instant import Micros, to_datetime, to_micros
from duetime.model.when import Cron

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
REMEDY = 'write "2026-11-16T09:00Z", "2026-11-16 09:00", "Monday 09:00" or "09:00", or give an aware datetime'
_CLOCK_TIME = re.compile(r"(?:([a-z]+)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?|([a-z]+)", re.IGNORECASE)

TimeInput = str | datetime


def parse_time(text: TimeInput, tz: str, now: Micros, field: str = "until") -> Micros:
    """A weekday or a time of day means the next one after `now` in the time zone `tz`."""
    if isinstance(text, datetime):
        return instant.read(text, field)
    if not isinstance(text, str):
        raise InvalidInput(field, f"{text!r} is not a time; {REMEDY}")
    clock_time = _CLOCK_TIME.fullmatch(text.strip())
    return _date(text, tz, field) if clock_time is None else _next(clock_time, text, tz, now, field)


def _next(found: re.Match[str], text: str, tz: str, now: Micros, field: str) -> Micros:
    day, hour, minute, second, only_day = found.groups()
    weekday = _weekday(day or only_day, text, field)
    try:
        cron = Cron(f"{int(second or 0)} {int(minute or 0)} {int(hour or 0)} * * {weekday}", tz=tz)
    except InvalidInput as problem:
        if int(hour or 0) < 24 and int(minute or 0) < 60 and int(second or 0) < 60:
            raise
        raise InvalidInput(field, f"{text!r} is not a time of day; {REMEDY}") from problem
    following = cron.next(to_datetime(now))
    assert following is not None
    return to_micros(following)


def _weekday(name: str | None, text: str, field: str) -> str:
    if name is None:
        return "*"
    matching = [day for day in DAYS if len(name) >= 3 and day.startswith(name.lower())]
    if not matching:
        raise InvalidInput(field, f"{text!r} does not name a day of the week; {REMEDY}")
    return matching[0][:3].upper()


def _date(text: str, tz: str, field: str) -> Micros:
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(field, f"{text!r} is not a time; {REMEDY}") from None
    if parsed.tzinfo is None:
        zone.load(tz)  # raises a clear error for an unknown zone
        parsed = parsed.replace(tzinfo=ZoneInfo(tz))
    return instant.read(parsed, field)

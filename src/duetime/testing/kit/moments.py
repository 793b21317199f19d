"""Instants as a test wants to write them: "2026-11-16T09:00Z", "2026-11-16 09:00", "Monday 09:00", "09:00"."""

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

Moment = str | datetime


def read_moment(moment: Moment, tz: str, now: Micros, field: str = "until") -> Micros:
    """The instant meant; a day or a time of day means the next one after `now`, on the clocks of `tz`."""
    if isinstance(moment, datetime):
        return instant.read(moment, field)
    if not isinstance(moment, str):
        raise InvalidInput(field, f"{moment!r} is no moment: {REMEDY}")
    clock_time = _CLOCK_TIME.fullmatch(moment.strip())
    return _date(moment, tz, field) if clock_time is None else _next(clock_time, moment, tz, now, field)


def _next(found: re.Match[str], text: str, tz: str, now: Micros, field: str) -> Micros:
    day, hour, minute, second, only_day = found.groups()
    weekday = _weekday(day or only_day, text, field)
    try:
        cron = Cron(f"{int(second or 0)} {int(minute or 0)} {int(hour or 0)} * * {weekday}", tz=tz)
    except InvalidInput as problem:
        if int(hour or 0) < 24 and int(minute or 0) < 60 and int(second or 0) < 60:
            raise
        raise InvalidInput(field, f"{text!r} is no time of day: {REMEDY}") from problem
    following = cron.next(to_datetime(now))
    assert following is not None
    return to_micros(following)


def _weekday(name: str | None, text: str, field: str) -> str:
    if name is None:
        return "*"
    matching = [day for day in DAYS if len(name) >= 3 and day.startswith(name.lower())]
    if not matching:
        raise InvalidInput(field, f"{text!r} names no day of the week: {REMEDY}")
    return matching[0][:3].upper()


def _date(text: str, tz: str, field: str) -> Micros:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(field, f"{text!r} is no moment: {REMEDY}") from None
    if moment.tzinfo is None:
        zone.load(tz)  # says so when there is no such zone
        moment = moment.replace(tzinfo=ZoneInfo(tz))
    return instant.read(moment, field)

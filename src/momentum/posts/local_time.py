"""A local time in a zone becomes an instant.

As in Duetime's schedules: a time that the clock skips (spring) means the first instant after the gap; a time
that happens twice (autumn) means the first pass. The note says so, for the person who chose the time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from momentum.errors import InvalidPost, Problem

MINUTE_FORMAT = "%Y-%m-%dT%H:%M"
SECOND = timedelta(seconds=1)


class Moment(NamedTuple):
    instant: datetime
    note: str | None = None


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


def zone_of(name: str, field: str = "zone") -> ZoneInfo:
    if name in _zone_names():
        return ZoneInfo(name)
    similar = get_close_matches(name, _zone_names(), 1, 0.6)
    remedy = f"did you mean {similar[0]}?" if similar else "use an IANA name such as Europe/Berlin"
    raise InvalidPost([Problem(field, f"{name!r} is not a time zone: {remedy}", "zone_unknown")])


def resolve(local_time: str, zone: str) -> Moment:
    """The instant of a local time, and a note if the clock change made it special."""
    place = zone_of(zone)
    try:
        local = datetime.fromisoformat(local_time)
    except ValueError:
        local = None
    if local is None or local.tzinfo is not None:
        message = f"{local_time!r} is not a local time: write it like 2026-11-20T09:00, without an offset"
        raise InvalidPost([Problem("local_time", message, "time_invalid")])
    return _resolve(local, place)


def _resolve(local: datetime, place: ZoneInfo) -> Moment:
    first, second = (local.replace(tzinfo=place, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return Moment(first.astimezone(UTC))
    if first.astimezone(UTC).astimezone(place).replace(tzinfo=None) == local:
        note = f"the clock shows {local:%H:%M} twice on this day: the first time is meant"
        return Moment(first.astimezone(UTC), note)
    end = _end_of_gap(second.astimezone(UTC), first.astimezone(UTC), place)
    due = end.astimezone(place)
    note = f"the clock skips {local:%H:%M} on this day: the post is due at {due:%H:%M}, after the gap"
    return Moment(end, note)


def _end_of_gap(before: datetime, after: datetime, place: ZoneInfo) -> datetime:
    """The first instant with the new offset. `before` has the old one and `after` the new one: Python maps a
    skipped time to both sides."""
    new = after.astimezone(place).utcoffset()
    while after - before > SECOND:
        middle = (before + (after - before) / 2).replace(microsecond=0)
        if middle.astimezone(place).utcoffset() == new:
            after = middle
        else:
            before = middle
    return after


def local_of(instant: datetime, zone: str) -> str:
    """The instant on the clock of the zone, to the minute."""
    try:
        return instant.astimezone(ZoneInfo(zone)).strftime(MINUTE_FORMAT)
    except (KeyError, ValueError, OSError):  # the zone is not in this machine's tz database
        return instant.astimezone(UTC).strftime(MINUTE_FORMAT)

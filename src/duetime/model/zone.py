"""IANA time zones as periods of constant offset, and the two ways in which a local time becomes an instant.

A *fixed* time happens when the local clock first reaches or passes it: in a gap at the first instant after
the gap, in a fold on the first pass. A *real* time happens at every instant whose local time matches: never
in a gap, twice in a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from duetime.errors import UnknownZone

DAY = 86_400
FIRST = -62_135_424_000  # 0001-01-03: no offset can push a local time out of the calendar
LAST = 253_370_764_800  # 9999-01-01: every fire is before it
FOREVER = 1 << 60

Search = Callable[[int], int | None]
"""The first matching local second at or after the given one. Local seconds count from 1970-01-01T00:00:00
local time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CHUNK_BITS = 25
# In the whole tz database, no two changes of offset are closer than four days, so a probe every two days
# finds all.
_PROBE = 2 * DAY
# The largest change of offset is a day (the date line moved), so no older change can have taken the local
# clock further.
_REACH = 4 * DAY
# The rarest day (29 February on a given weekday) comes again within forty years, so after a hundred years
# there is no match.
_HORIZON = 100 * 366 * DAY
MAX_NAME = 64
SIMILAR = 0.8
_NOT_ZONES = ("posix/", "right/", "localtime", "posixrules")


class Period(NamedTuple):
    """A period `start <= instant < end` of one offset. `high` is the latest local time that was reached
    before `start`."""

    start: int
    end: int
    offset: int
    high: int


class ClockChange(NamedTuple):
    """At `at` the offset `before` changes by `shift` seconds. A change forward makes a gap; a change back
    repeats local times."""

    at: int
    shift: int
    before: int


class Zone:
    """One time zone. Its periods are read from zoneinfo when needed, about a year at a time, and cached."""

    __slots__ = ("_chunks", "_info", "_latest", "name")

    def __init__(self, name: str, info: ZoneInfo | None) -> None:
        self.name = name
        self._info = info
        self._chunks: dict[int, tuple[Period, ...]] = {}
        self._latest = Period(0, 0, 0, 0) if info else Period(-FOREVER, FOREVER, 0, -FOREVER)

    def wall_time(self, moment: int) -> datetime:
        """The local time of an instant in microseconds."""
        offset = timezone(timedelta(seconds=self.period_at(moment // 1_000_000).offset))
        return (_EPOCH + timedelta(microseconds=moment)).astimezone(offset)

    def period_at(self, instant: int) -> Period:
        latest = self._latest
        if latest.start <= instant < latest.end:
            return latest
        index = instant >> _CHUNK_BITS
        periods = self._chunks.get(index) or self._read_chunk(index)
        found = next(period for period in periods if instant < period.end)
        self._latest = found
        return found

    def local(self, instant: int) -> int:
        return instant + self.period_at(instant).offset

    def changes(self, start: int, end: int) -> Iterator[ClockChange]:
        """Every change of offset in `start < instant < end`."""
        period = self.period_at(start)
        while period.end < end:
            following = self.period_at(period.end)
            if following.offset != period.offset:
                yield ClockChange(period.end, following.offset - period.offset, period.offset)
            period = following

    def next_fixed(self, search: Search, after: int) -> int | None:
        """The first instant later than `after` at which the local clock reaches or passes a matching time."""
        period = self.period_at(after)
        _, end, offset, high = period
        local = after + offset
        # On the second pass of a fold, all times up to `high` have already fired.
        found = search((local if local > high else high) + 1)
        if found is None:
            return None
        if found < end + offset:
            return found - offset
        return self.reached(found)

    def next_real(self, search: Search, after: int) -> int | None:
        """The first instant later than `after` whose local time matches."""
        start = after + 1
        horizon = start + _HORIZON
        searched, found = FOREVER, -FOREVER
        while start < horizon:
            _, end, offset, _ = self.period_at(start)
            local = start + offset
            if not searched <= local <= found:
                match = search(local)
                searched, found = local, FOREVER if match is None else match
            elif found == FOREVER:
                return None
            if found < end + offset:
                return found - offset
            start = end
        return None

    def reached(self, local: int) -> int:
        """The first instant at which the local clock reaches or passes this local second."""
        period = self.period_at(local - _REACH)
        while period.end + period.offset <= local:
            period = self.period_at(period.end)
        return max(period.start, local - period.offset)

    def _read_chunk(self, index: int) -> tuple[Period, ...]:
        start, end = index << _CHUNK_BITS, (index + 1) << _CHUNK_BITS
        high, periods = -FOREVER, []
        for since, until, offset in self._stretches(start - _REACH, end):
            if until > start:
                periods.append(
                    Period(
                        max(since, start),
                        until,
                        offset,
                        max(high, start - 1 + offset) if since < start else high,
                    )
                )
            high = max(high, until - 1 + offset)
        self._chunks[index] = tuple(periods)
        return self._chunks[index]

    def _stretches(self, start: int, end: int) -> list[tuple[int, int, int]]:
        stretches, since, offset = [], start, self._offset(start)
        for probe in [*range(start + _PROBE, end, _PROBE), end - 1]:
            reached = self._offset(probe)
            if reached != offset:
                changed = self._change(probe - _PROBE, probe, offset)
                stretches.append((since, changed, offset))
                since, offset = changed, reached
        return [*stretches, (since, end, offset)]

    def _change(self, low: int, high: int, offset: int) -> int:
        """The first instant in (low, high] whose offset is no longer `offset`."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._offset(middle) == offset else (low, middle)
        return high

    def _offset(self, instant: int) -> int:
        moment = _EPOCH + timedelta(seconds=min(max(instant, FIRST), LAST))
        offset = moment.astimezone(self._info).utcoffset()
        assert offset is not None
        return offset // timedelta(seconds=1)


def matches(search: Search, start: int, end: int) -> Iterator[int]:
    """Every matching local second in `start <= second < end`."""
    moment = search(start)
    while moment is not None and moment < end:
        yield moment
        moment = search(moment + 1)


class LocalTimes:
    """Matching local times of one zone, as instants in microseconds."""

    __slots__ = ("_fixed", "_search", "_utc", "_zone")

    def __init__(self, zone: Zone, search: Search, fixed: bool) -> None:
        self._zone, self._search, self._fixed, self._utc = zone, search, fixed, zone.name == "UTC"

    def next_us(self, after: int) -> int | None:
        """The first match later than `after`; None after the end of the calendar."""
        second = after // 1_000_000
        if not FIRST <= second < LAST:
            if second >= LAST:
                return None
            second = FIRST
        if self._utc:
            found = self._search(second + 1)
        else:
            found = (
                self._zone.next_fixed(self._search, second)
                if self._fixed
                else self._zone.next_real(self._search, second)
            )
        return found * 1_000_000 if found is not None and found < LAST else None


def load(name: str) -> Zone:
    """The zone of that IANA name, for example "Europe/Berlin"."""
    if (
        not isinstance(name, str)
        or not 0 < len(name) <= 64
        or not name.isascii()
        or name.startswith(_NOT_ZONES)
    ):
        raise _unknown(name)
    return _load(name)


def forget() -> None:
    """Forget all zones that were read. Call it after the tz database was replaced."""
    ZoneInfo.clear_cache()
    _load.cache_clear()
    _names.cache_clear()


UTC_ZONE = Zone("UTC", None)


@lru_cache(maxsize=1024)
def _load(name: str) -> Zone:
    if name == "UTC":
        return UTC_ZONE
    try:
        return Zone(name, ZoneInfo(name))
    except (KeyError, ValueError, OSError) as problem:
        raise _unknown(name) from problem


def _unknown(name: object) -> UnknownZone:
    nearest = _nearest(name) if isinstance(name, str) else None
    remedy = (
        "give an IANA name such as 'UTC' or 'Europe/Berlin'"
        if nearest is None
        else f"did you mean {nearest!r}?"
    )
    return UnknownZone("tz", f"there is no time zone {name!r}: {remedy}")


def _nearest(name: str) -> str | None:
    """The zone that the user may have meant: other capitals, only the city, a missing letter. Never suggests
    another offset: EST is not CEST, and the sign of Etc/GMT+2 is not what people expect."""
    if len(name) > MAX_NAME:
        return None
    wanted = name.strip().lower().replace(" ", "_")
    whole = _names()
    if wanted in whole:
        return whole[wanted]
    places = {short: zone for short, zone in whole.items() if "/" in zone and not zone.startswith("Etc/")}
    known = {short.rpartition("/")[2]: zone for short, zone in places.items()} | places
    close = get_close_matches(wanted, known, 1, SIMILAR)
    return known[close[0]] if close else None


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """All zone names by their lower-case form. Slow: it reads the whole tz database."""
    return {zone.lower(): zone for zone in sorted(available_timezones()) if not zone.startswith(_NOT_ZONES)}

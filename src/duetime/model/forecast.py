"""The forecast: counts every fire of a set of schedules in a period, and shows what clock changes do to them.

Fires are merged in time order and counted one by one, so memory does not grow with their number.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice, repeat
from operator import itemgetter
from typing import Literal

from duetime.model import cron, instant, zone
from duetime.model.describe import text
from duetime.model.describe.when import describe
from duetime.model.instant import MINUTE, SECOND, Micros
from duetime.model.when import Cron, WallClock, When, is_interval, uses_hash, wall_clock
from duetime.model.zone import ClockChange, matches

HOUR = 60 * MINUTE
MAX_FIRES = 1_000_000
MAX_HERDS = 10
MAX_HERD_NAMES = 5


@dataclass(frozen=True, slots=True)
class Planned:
    """What the forecast needs to know about a schedule."""

    name: str
    when: When
    start_at: Micros | None = None
    end_at: Micros | None = None
    runs_left: int | None = None

    def fires(self, start: Micros, end: Micros) -> Iterator[Micros]:
        """Every fire in `start <= instant < end`."""
        first = start if self.start_at is None else max(start, self.start_at)
        last = end if self.end_at is None else min(end, self.end_at + 1)
        return islice(self.when.between_us(first, last), self.runs_left)


@dataclass(frozen=True, slots=True)
class Herd:
    """Several fires at one instant. `names` are the first few schedules."""

    at: Micros
    count: int
    names: tuple[str, ...]


EffectKind = Literal["moved", "left_out", "repeated", "once"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a clock change does to one schedule. It affects `count` of its local times."""

    name: str
    kind: EffectKind
    count: int


@dataclass(frozen=True, slots=True)
class ClockChangeEffects:
    """At `at` the offset of a zone changes by `shift` seconds."""

    tz: str
    at: Micros
    shift: int
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    start: Micros
    end: Micros  # earlier than requested if there were too many fires to count
    schedules: int
    fires: int
    by_hour: tuple[tuple[Micros, int], ...]  # every hour of the period, also those without fires
    peak: tuple[Micros, int] | None  # the busiest minute
    herds: tuple[Herd, ...]  # instants with more than one fire, largest first
    clock_changes: tuple[ClockChangeEffects, ...]


def forecast(planned: Sequence[Planned], start: Micros, end: Micros, most_fires: int = MAX_FIRES) -> Forecast:
    """Every fire in `start <= instant < end`."""
    counter = _FireCounter([one.name for one in planned], most_fires)
    reached = counter.count(_merged(planned, start, end)) or end
    hours = range(start - start % HOUR, reached, HOUR)
    return Forecast(
        start=start,
        end=reached,
        schedules=len(planned),
        fires=counter.fires,
        by_hour=tuple((hour, counter.by_hour[hour]) for hour in hours),
        peak=counter.peak,
        herds=counter.largest_herds(),
        clock_changes=tuple(_clock_changes(planned, start, reached)),
    )


def _merged(planned: Sequence[Planned], start: Micros, end: Micros) -> Iterator[tuple[Micros, int]]:
    return heapq.merge(
        *(zip(one.fires(start, end), repeat(index), strict=False) for index, one in enumerate(planned))
    )


class _FireCounter:
    def __init__(self, names: Sequence[str], most_fires: int) -> None:
        self._names = names
        self._most_fires = most_fires
        self._minute: tuple[Micros, int] = (-1, 0)
        self._herds: list[tuple[int, Micros, tuple[int, ...]]] = []
        self.fires = 0
        self.by_hour: Counter[Micros] = Counter()
        self.peak: tuple[Micros, int] | None = None

    def count(self, merged: Iterator[tuple[Micros, int]]) -> Micros | None:
        """Counts all fires. Returns the instant at which it reached the limit, if it did."""
        moment: Micros
        for moment, group in groupby(merged, key=itemgetter(0)):
            if self.fires >= self._most_fires:
                return moment
            self._add(moment, [index for _, index in group])
        return None

    def _add(self, moment: Micros, who: list[int]) -> None:
        self.fires += len(who)
        self.by_hour[moment - moment % HOUR] += len(who)
        minute, before = moment - moment % MINUTE, 0
        if minute == self._minute[0]:
            before = self._minute[1]
        self._minute = (minute, before + len(who))
        if self.peak is None or self._minute[1] > self.peak[1]:
            self.peak = self._minute
        if len(who) > 1:
            # The negated instant keeps the earliest of equally large herds.
            heapq.heappush(self._herds, (len(who), -moment, tuple(who[:MAX_HERD_NAMES])))
            if len(self._herds) > MAX_HERDS:
                heapq.heappop(self._herds)

    def largest_herds(self) -> tuple[Herd, ...]:
        largest = sorted(self._herds, reverse=True)
        return tuple(
            Herd(-moment, count, tuple(self._names[index] for index in who)) for count, moment, who in largest
        )


def _clock_changes(planned: Sequence[Planned], start: Micros, end: Micros) -> Iterator[ClockChangeEffects]:
    by_zone: dict[str, list[tuple[str, WallClock]]] = {}
    for one in planned:
        if (wall := wall_clock(one.when)) is not None:
            by_zone.setdefault(wall.zone.name, []).append((one.name, wall))
    found = [
        (change, tz) for tz in by_zone for change in zone.load(tz).changes(start // SECOND, end // SECOND)
    ]
    for change, tz in sorted(found):
        effects = (_effect(name, wall, change) for name, wall in by_zone[tz])
        yield ClockChangeEffects(
            tz, change.at * SECOND, change.shift, tuple(effect for effect in effects if effect is not None)
        )


def _effect(name: str, wall: WallClock, change: ClockChange) -> Effect | None:
    old, new = change.at + change.before, change.at + change.before + change.shift
    count = sum(1 for _ in matches(wall.search, min(old, new), max(old, new)))
    if not count or (wall.until is not None and change.at * SECOND > wall.until):
        return None
    if change.shift < 0:
        return Effect(name, "once" if wall.fixed else "repeated", count)
    return Effect(name, "moved" if wall.fixed and wall.search(new) != new else "left_out", count)


# The next fires for people: in words, in local time, with warnings about what may surprise them.


@dataclass(frozen=True, slots=True)
class PreviewedFire:
    at: datetime  # UTC
    local: datetime  # the same instant in the schedule's time zone
    note: str | None  # what a clock change does to it


@dataclass(frozen=True, slots=True)
class Preview:
    words: str
    fires: tuple[PreviewedFire, ...]
    warnings: tuple[str, ...]


def preview(
    when: When, count: int, after: Micros, start: Micros | None = None, end: Micros | None = None
) -> Preview:
    """The first fires of a schedule with this start and end."""
    after = after if start is None else max(after, start - 1)
    return previewed(when, list(islice(fires_after(when, after, end), count)), after, end)


def fires_after(when: When, after: Micros, end: Micros | None = None) -> Iterator[Micros]:
    moment = when.next_us(after)
    while moment is not None and (end is None or moment <= end):
        yield moment
        moment = when.next_us(moment)


def previewed(when: When, fires: Sequence[Micros], after: Micros, end: Micros | None = None) -> Preview:
    """`fires` are all fires after `after`, up to the last of them. There is no fire after `end`."""
    notes = text.notes(when, fires, after)
    local = local_clock(when)
    shown = tuple(PreviewedFire(instant.to_datetime(fire), local(fire), notes.get(fire)) for fire in fires)
    empty = (
        []
        if fires
        else ["there are no more fires: all its instants are in the past, or outside start_at and end_at"]
    )
    reached = max([after, *fires[-1:]])
    return Preview(describe(when), shown, (*empty, *surprises(when), *text.coming(when, reached, end)))


def local_clock(when: When) -> Callable[[Micros], datetime]:
    """Converts an instant to the local time of its zone."""
    wall = wall_clock(when)
    return instant.to_datetime if wall is None else wall.zone.wall_time


def surprises(when: When) -> list[str]:
    """Warnings about expressions that often mean something else than intended."""
    if not isinstance(when, Cron) or is_interval(when):
        return []
    pattern, found = cron.parse(when.expr, when.key), []
    if uses_hash(when) and not when.key:
        found.append("H depends on the name of the schedule: a schedule fires at other times than these")
    by_month = bool(pattern.month_days) and len(pattern.month_days) < 31
    if pattern.either_day and (by_month or not pattern.month_days) and len(pattern.weekdays) < 7:
        found.append(
            "day of month and day of week are both given: it fires on days that match either of them"
        )
    ends = pattern.last_offsets or pattern.last_workday_offsets or pattern.nearest_workdays
    if by_month and pattern.month_days[0] > 28 and not ends and not pattern.either_day:
        found.append(f"months without a day {pattern.month_days[0]} are skipped: write L for the last day")
    return found

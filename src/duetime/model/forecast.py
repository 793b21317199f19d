"""The forecast: every fire of a set of schedules over a stretch of time, counted; and what changes of the clocks do to them.

Fires are merged in time order and counted as they pass, so memory does not grow with their number.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, takewhile
from operator import itemgetter
from typing import Literal

from duetime.model import zone
from duetime.model.instant import SECOND, Micros
from duetime.model.schedule import Schedule
from duetime.model.when import Cron, RRule, When

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
MOST_FIRES = 1_000_000
MOST_HERDS = 10
NAMES_OF_A_HERD = 5


@dataclass(frozen=True, slots=True)
class Planned:
    """What the forecast needs to know of a schedule."""

    name: str
    when: When
    start_at: Micros | None = None
    end_at: Micros | None = None
    runs_left: int | None = None

    @staticmethod
    def of(schedule: Schedule) -> Planned:
        draft = schedule.draft
        left = None if draft.max_runs is None else max(0, draft.max_runs - schedule.runs)
        return Planned(draft.name, draft.when, draft.start_at, draft.end_at, left)

    def fires(self, start: Micros) -> Iterator[Micros]:
        """Fire times from `start` on, `start` itself included."""
        return islice(self._walk(start if self.start_at is None else max(start, self.start_at)), self.runs_left)

    def _walk(self, start: Micros) -> Iterator[Micros]:
        moment = self.when.next_us(start - 1)
        while moment is not None and (self.end_at is None or moment <= self.end_at):
            yield moment
            moment = self.when.next_us(moment)


@dataclass(frozen=True, slots=True)
class Herd:
    """Many fires at one instant; `names` are the first few of them."""

    at: Micros
    count: int
    names: tuple[str, ...]


EffectKind = Literal["moved", "left_out", "repeated", "once"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change of the clock does to one schedule: `count` of its wall-clock times are concerned."""

    name: str
    kind: EffectKind
    count: int


@dataclass(frozen=True, slots=True)
class ClockChange:
    """At `at` the offset of a zone changes by `shift` seconds: forward leaves a gap, back makes an hour come twice."""

    tz: str
    at: Micros
    shift: int
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    start: Micros
    end: Micros  # earlier than asked for when there were too many fires to count
    schedules: int
    fires: int
    by_hour: tuple[tuple[Micros, int], ...]  # every hour of the stretch, the quiet ones too
    peak: tuple[Micros, int] | None  # the busiest minute
    herds: tuple[Herd, ...]  # instants with more than one fire, largest first
    clock_changes: tuple[ClockChange, ...]


def forecast(planned: Sequence[Planned], start: Micros, end: Micros, most_fires: int = MOST_FIRES) -> Forecast:
    """Every fire in `start <= instant < end`."""
    tally = _Tally([one.name for one in planned], most_fires)
    reached = tally.count(_merged(planned, start, end)) or end
    hours = range(start - start % HOUR, reached, HOUR)
    return Forecast(
        start=start,
        end=reached,
        schedules=len(planned),
        fires=tally.fires,
        by_hour=tuple((hour, tally.by_hour[hour]) for hour in hours),
        peak=tally.peak,
        herds=tally.largest_herds(),
        clock_changes=tuple(_clock_changes(planned, start, reached)),
    )


def _merged(planned: Sequence[Planned], start: Micros, end: Micros) -> Iterator[tuple[Micros, int]]:
    def stream(index: int, one: Planned) -> Iterator[tuple[Micros, int]]:
        return ((moment, index) for moment in takewhile(lambda moment: moment < end, one.fires(start)))

    return heapq.merge(*(stream(index, one) for index, one in enumerate(planned)))


class _Tally:
    def __init__(self, names: Sequence[str], most_fires: int) -> None:
        self._names = names
        self._most_fires = most_fires
        self._minute: tuple[Micros, int] = (-1, 0)
        self._herds: list[tuple[int, Micros, tuple[int, ...]]] = []
        self.fires = 0
        self.by_hour: Counter[Micros] = Counter()
        self.peak: tuple[Micros, int] | None = None

    def count(self, merged: Iterator[tuple[Micros, int]]) -> Micros | None:
        """Counts instant by instant; answers where it had to stop, if it had to."""
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
            # The negated instant keeps the earliest of herds that are equally large.
            heapq.heappush(self._herds, (len(who), -moment, tuple(who[:NAMES_OF_A_HERD])))
            if len(self._herds) > MOST_HERDS:
                heapq.heappop(self._herds)

    def largest_herds(self) -> tuple[Herd, ...]:
        largest = sorted(self._herds, reverse=True)
        return tuple(Herd(-moment, count, tuple(self._names[index] for index in who)) for count, moment, who in largest)


def _clock_changes(planned: Sequence[Planned], start: Micros, end: Micros) -> Iterator[ClockChange]:
    by_zone: dict[str, list[tuple[Planned, When]]] = {}
    for one in planned:
        if (wall := _on_the_wall(one.when)) is not None and isinstance(one.when, Cron | RRule):
            by_zone.setdefault(one.when.tz, []).append((one, wall))
    found = [(at, tz, shift, before) for tz in by_zone for at, shift, before in zone.load(tz).changes(start // SECOND, end // SECOND)]
    for at, tz, shift, before in sorted(found):
        effects = (_effect(one, wall, at, shift, before) for one, wall in by_zone[tz])
        yield ClockChange(tz, at * SECOND, shift, tuple(effect for effect in effects if effect is not None))


def _on_the_wall(when: When) -> When | None:
    """The same times read as if they were UTC: what the wall would show if clocks never changed. None where that means nothing."""
    match when:
        case Cron() if not when.expr.startswith("@every"):
            return Cron(when.expr, "UTC", when.key)
        case RRule():
            *first, rule = when.text.splitlines()
            starts = [f"DTSTART:{line.rpartition(':')[2]}" for line in first]
            return None if any(line.upper().endswith("Z") for line in starts) else RRule("\n".join([*starts, rule]))
        case _:
            return None


def _effect(one: Planned, wall: When, at: int, shift: int, before: int) -> Effect | None:
    if shift > 0:
        jumped = _count(wall, at + before, at + before + shift)
        own = _count(wall, at + before + shift, at + before + shift + 1)
        moved = not own and _count(one.when, at, at + 1) > 0
        return Effect(one.name, "moved" if moved else "left_out", jumped) if jumped else None
    twice = _count(wall, at + before + shift, at + before)
    again = _count(one.when, at, at - shift)
    return Effect(one.name, "repeated" if again else "once", again or twice) if twice else None


def _count(when: When, start: int, end: int) -> int:
    """Fires in `start <= second < end`."""
    count, moment = 0, when.next_us(start * SECOND - 1)
    while moment is not None and moment < end * SECOND:
        count, moment = count + 1, when.next_us(moment)
    return count

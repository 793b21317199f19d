"""The calendar: the number of fires of many schedules in each bucket of the coming days.

Counting one by one would take minutes for thousands of schedules that fire every minute. But on every day
without a clock change, a cron expression fires at the same times. So schedules are grouped by zone and
matching days, the times of a day are counted once per cell, and the days are added to the grid. Schedules
that do not repeat by the day are counted one by one, in small steps.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from math import gcd
from uuid import UUID

from duetime.errors import InvalidWhen
from duetime.model import cron, zone
from duetime.model.cron import CronSearch
from duetime.model.instant import LATEST, SECOND, Micros, to_micros
from duetime.model.rrule_search import StepBudget
from duetime.model.schedule import Schedule
from duetime.model.target import shown_name
from duetime.model.when import Cron, Every, Unreadable, When
from duetime.model.zone import DAY, Zone

MAX_CELL = 900  # seconds; offsets of zones are whole multiples of it
BUCKETS_PER_STEP = 32
MAX_RUNS = 1_000  # with more runs left than this, a schedule counts as unlimited
MAX_RUN_STEPS = 20_000  # the same for a recurrence rule that is slow to search
MAX_SPAN = 35 * DAY * SECOND
# Hours around midnight UTC that matter for a local day in any zone: an offset and a day. No two clock changes
# are this close.
AROUND = 38
_MICROSECOND = timedelta(microseconds=1)
BUCKETS = {
    name: seconds * SECOND
    for name, seconds in {
        "1m": 60, "5m": 300, "10m": 600, "15m": 900, "30m": 1_800, "1h": 3_600, "2h": 7_200, "3h": 10_800,
        "4h": 14_400, "6h": 21_600,
        "8h": 28_800, "12h": 43_200, "1d": 86_400,
    }.items()
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coming:
    """What the calendar needs to know about a schedule that fires."""

    id: UUID
    name: str
    target: str
    when: When
    start_at: Micros | None = None
    last: Micros | None = None  # its last fire

    @staticmethod
    def of(schedule: Schedule) -> Coming | None:
        """None for a schedule that does not fire: it is paused, or this machine cannot read it."""
        draft = schedule.draft
        if schedule.paused or isinstance(draft.when, Unreadable):
            return None
        return Coming(
            schedule.id, draft.name, shown_name(draft.target), draft.when, draft.start_at, _last(schedule)
        )

    def next(self, after: Micros, end: Micros) -> Micros | None:
        """The first fire later than `after` and before `end`; None if there is none."""
        return next(self.fires(after + 1, end), None)

    def fires(self, start: Micros, end: Micros) -> Iterator[Micros]:
        """Every fire in `start <= instant < end`."""
        first = start if self.start_at is None else max(start, self.start_at)
        return self.when.between_us(first, end if self.last is None else min(end, self.last + 1))

    def bounded(self, start: Micros, end: Micros) -> bool:
        """Whether its start, end or number of runs removes fires from this period."""
        return (self.start_at or start) > start or (self.last is not None and self.last < end)


def _last(schedule: Schedule) -> Micros | None:
    """Its last fire, if known: from its end, or from its remaining runs after the planned ones."""
    draft, cursor = schedule.draft, schedule.next_fire_time
    if cursor is None:
        return schedule.last_fire_time or 0
    if draft.max_runs is None:
        return draft.end_at
    last = _nth(_plain(draft.when), cursor, draft.max_runs - schedule.runs)
    return last if last is None or draft.end_at is None else min(last, draft.end_at)


def _nth(when: When, cursor: Micros, runs: int) -> Micros | None:
    """The last of this many fires from the cursor on; None if there are too many to count."""
    if isinstance(when, Every):
        return cursor + (runs - 1) * (when.interval // _MICROSECOND)
    if runs > MAX_RUNS:
        return None
    try:
        with StepBudget(MAX_RUN_STEPS):
            return max(islice(when.between_us(cursor, LATEST), runs), default=cursor)
    except InvalidWhen:
        return None


class Grid:
    """Buckets that begin with the days of a zone, and the cells inside them. Fires count from `since` on, and
    before `end`."""

    def __init__(
        self, start: Micros, end: Micros, bucket: Micros, tz: str = "UTC", since: Micros = 0
    ) -> None:
        self.since, self.end = min(max(start, since), end), end
        self.cell = gcd(bucket // SECOND, MAX_CELL)
        self.edges = _edges(start // SECOND, -(-end // SECOND), bucket // SECOND, zone.load(tz))
        self.first = self.edges[0] // self.cell  # the number of the first cell
        self.size = -(-self.edges[-1] // self.cell) - self.first

    def sums(self, cells: list[int]) -> list[tuple[Micros, int]]:
        places = [edge // self.cell - self.first for edge in self.edges]
        return [
            (edge * SECOND, sum(cells[low:high]))
            for edge, low, high in zip(self.edges, places, places[1:], strict=False)
        ]


class FireCounter:
    """Counts fires over a grid. `add` only collects schedules; `work` counts, a few steps at a time."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._cells = [0] * grid.size
        self._buckets = [0] * (len(grid.edges) - 1)  # fires that are counted without cells
        self._cuts: Counter[int] = Counter()  # cell -> its fires outside the period
        self._alike: Counter[Cron | Every] = Counter()  # schedules that fire at the same instants
        self._chores: deque[Iterator[None]] = deque()
        self._laid = False  # the last chore has been added
        self._spans: dict[str, _Span] = {}
        self._days: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._times: dict[tuple[tuple[int, ...], tuple[int, ...], int], list[tuple[int, int]]] = {}
        self._daily: dict[
            tuple[str, tuple[int, ...]], list[int]
        ] = {}  # zone and days -> fires by slot of the day

    def add(self, coming: Coming) -> None:
        when = _plain(coming.when)
        if isinstance(when, Cron | Every) and not coming.bounded(self._grid.since, self._grid.end):
            self._alike[when] += 1
        else:
            self._chores.append(self._count(coming.fires(self._grid.since, self._grid.end), 1))

    def work(self, steps: int) -> bool:
        """Do up to this many steps. Returns False when all is counted."""
        if self._alike:
            self._chores.appendleft(self._sort(self._alike))
            self._alike = Counter()
        while self._chores and steps > 0:
            chore = self._chores[0]
            for _ in chore:
                steps -= 1
                if steps <= 0:
                    return True
            self._chores.remove(chore)
        if not self._chores and not self._laid:
            self._lay()
        return bool(self._chores)

    def result(self) -> list[tuple[Micros, int]]:
        """The beginning of each bucket and the number of its fires."""
        return [
            (at, count + more)
            for (at, count), more in zip(self._grid.sums(self._cells), self._buckets, strict=True)
        ]

    def hurry(self) -> None:
        """Skip the slow part of the work. The counts are then too low."""
        if not self._laid:
            self._alike.clear()
            self._chores.clear()
            self._lay()

    def _lay(self) -> None:
        self._laid = True
        self._chores.append(self._lay_all())

    # Chores: each yields between two steps.
    def _sort(self, alike: Counter[Cron | Every]) -> Iterator[None]:
        for when, number in alike.items():
            if isinstance(when, Cron):
                self._add_cron(when, number)
            else:
                self._add_every(when, number)
            yield

    def _count(self, moments: Iterator[Micros], number: int) -> Iterator[None]:
        cell, first, cells = self._grid.cell * SECOND, self._grid.first, self._cells
        for moment in moments:
            cells[moment // cell - first] += number
            yield

    def _sweep(self, interval: Micros, phase: Micros, number: int) -> Iterator[None]:
        """Counts an interval that does not divide the day, bucket by bucket."""
        grid = self._grid
        fired = (grid.since - 1 - phase) // interval
        for place, edge in enumerate(grid.edges[1:]):
            until = (max(grid.since, min(edge * SECOND, grid.end)) - 1 - phase) // interval
            self._buckets[place] += (until - fired) * number
            fired = until
            if place % BUCKETS_PER_STEP == 0:
                yield

    def _lay_all(self) -> Iterator[None]:
        grid, cells = self._grid, self._cells
        for place, count in self._cuts.items():
            cells[place] -= count
        low, high = grid.since // (grid.cell * SECOND), -(-grid.end // (grid.cell * SECOND))
        for (tz, days), slots in self._daily.items():
            filled = [(slot, count) for slot, count in enumerate(slots) if count]
            for day in days:
                begin = (day * DAY - self._span(tz).offset(day)) // grid.cell
                for slot, count in filled:
                    if low <= begin + slot < high:
                        cells[begin + slot - grid.first] += count
                yield

    def _add_cron(self, when: Cron, number: int) -> None:
        search = cron.compiled(when.expr, when.key)
        span, pattern = self._span(when.tz), search.pattern
        slots = self._slots(when.tz, self._matching(span, search))
        key = (pattern.hours, pattern.minutes, len(pattern.seconds))
        if key not in self._times:
            self._times[key] = _profile(*key, self._grid.cell)
        for slot, count in self._times[key]:
            slots[slot] += count * number
        self._cut(when, span, number)
        for low, high in span.irregular:
            moments = when.between_us(max(low, self._grid.since), min(high, self._grid.end))
            self._chores.append(self._count(moments, number))

    def _matching(self, span: _Span, search: CronSearch) -> tuple[int, ...]:
        """The regular days of the span on which it fires."""
        pattern = search.pattern
        key = (
            span.tz, pattern.month_days, pattern.months, pattern.weekdays, pattern.last_offsets,
            pattern.last_workday_offsets, pattern.nearest_workdays, pattern.nth_weekdays,
            pattern.last_weekdays,
            pattern.either_day,
        )  # fmt: skip
        if key not in self._days:
            self._days[key] = tuple(day for day in span.days if (search(day * DAY) or 0) // DAY == day)
        return self._days[key]

    def _add_every(self, when: Every, number: int) -> None:
        interval, cell = when.interval // _MICROSECOND, self._grid.cell * SECOND
        phase = to_micros(when.anchor) % interval
        if (DAY * SECOND) % interval:
            self._chores.append(self._sweep(interval, phase, number))
            return
        span = self._span("UTC")
        slots = self._slots("UTC", span.days)
        if cell % interval == 0:
            for slot in range(len(slots)):
                slots[slot] += cell // interval * number
        else:
            for moment in range(phase, DAY * SECOND, interval):
                slots[moment // cell] += number
        self._cut(when, span, number)

    def _cut(self, when: When, span: _Span, number: int) -> None:
        """Whole cells are counted. This subtracts fires of the first cell before `since` and of the last from
        `end` on."""
        grid, cell = self._grid, self._grid.cell * SECOND
        for low, high in ((grid.since // cell * cell, grid.since), (grid.end, -(-grid.end // cell) * cell)):
            if low < high and not any(begin <= low < end for begin, end in span.irregular):
                self._cuts[low // cell - grid.first] += number * sum(1 for _ in when.between_us(low, high))

    def _slots(self, tz: str, days: tuple[int, ...]) -> list[int]:
        return self._daily.setdefault((tz, days), [0] * (DAY // self._grid.cell))

    def _span(self, tz: str) -> _Span:
        if tz not in self._spans:
            self._spans[tz] = _Span(tz, self._grid)
        return self._spans[tz]


class _Span:
    """The local days of a zone that a grid touches: regular days by number, the others as periods of real
    time."""

    def __init__(self, tz: str, grid: Grid) -> None:
        self.tz = tz
        self._zone = zone.load(tz)
        start, end = grid.since // SECOND, -(-grid.end // SECOND)
        local = range(self._zone.local(start) // DAY - 1, self._zone.local(end) // DAY + 2)
        odd = {day for day in local if self._is_odd(day, grid.cell)}
        self.days = tuple(day for day in local if day not in odd)
        self.irregular = [
            (self._zone.reached(day * DAY) * SECOND, self._zone.reached((day + 1) * DAY) * SECOND)
            for day in sorted(odd)
        ]

    def offset(self, day: int) -> int:
        return self._zone.period_at(day * DAY - self._zone.period_at(day * DAY).offset).offset

    def _is_odd(self, day: int, cell: int) -> bool:
        """Whether the clocks change within a day of it, or its midnight is inside a cell."""
        before, after = (
            self._zone.period_at(day * DAY + hours * 3_600).offset for hours in (-AROUND, AROUND)
        )
        return before != after or before % cell != 0


def _edges(start: int, end: int, bucket: int, place: Zone) -> list[int]:
    """The beginnings of the buckets, from the one that holds `start`, and the end of the last. Each local day
    begins a bucket."""
    edges: list[int] = []
    day = place.local(start) // DAY
    while not edges or edges[-1] < end:
        low, high = place.reached(day * DAY), place.reached((day + 1) * DAY)
        edges += range(low, high, bucket)
        day += 1
        if high >= end:
            edges.append(high)
    first = max(number for number, edge in enumerate(edges) if edge <= start)
    last = next(number for number, edge in enumerate(edges) if edge >= end)
    return edges[first : last + 1]


def _profile(
    hours: tuple[int, ...], minutes: tuple[int, ...], seconds: int, cell: int
) -> list[tuple[int, int]]:
    """Fires by slot of the day."""
    slots = Counter((hour * 3_600 + minute * 60) // cell for hour in hours for minute in minutes)
    return [(slot, count * seconds) for slot, count in slots.items()]


def _plain(when: When) -> When:
    """`@every 10s` is an interval, whatever its zone."""
    if isinstance(when, Cron) and when.expr.lower().startswith("@every"):
        return Every(when.expr[len("@every") :].strip())
    return when

"""The calendar of future fires. Counts on a thread, so that the event loop is never blocked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple
from uuid import UUID

from duetime.app.context import AppContext
from duetime.app.search import MAX_STEPS, bounded, off_loop
from duetime.engine.submit.validate import check_count
from duetime.errors import InvalidInput
from duetime.model import zone
from duetime.model.calendar import BUCKETS, MAX_SPAN, Coming, FireCounter, Grid
from duetime.model.instant import SECOND, Micros, read, to_datetime, to_micros
from duetime.model.schedule import Schedule, ScheduleFilter

PAGE = 200  # schedules in one read
STEPS = 20  # counts between two looks at the clock
STEPS_PER_SCHEDULE = 1_000  # of recurrence rules, for a page of fires
COUNTING_TIMEOUT = SECOND
MAX_BUCKETS = 1_500
INCOMPLETE = "counting all fires took too long: ask for a shorter range"


@dataclass(frozen=True, slots=True)
class Calendar:
    start: datetime
    end: datetime
    buckets: list[tuple[datetime, int]]  # where each begins, and how many fires it holds
    complete: bool  # False: these are at least so many
    note: str | None = None


class CalendarFire(NamedTuple):
    at: datetime
    schedule_id: UUID
    name: str
    target: str


class FirePage(NamedTuple):
    fires: list[CalendarFire]
    next: tuple[datetime, UUID] | None  # where the next page begins; None: this is the last


@dataclass(frozen=True, slots=True)
class FireCalendar:
    """Calling it counts the future fires by bucket."""

    context: AppContext

    async def __call__(
        self, start: datetime | None = None, end: datetime | None = None, bucket: str = "1h", tz: str = "UTC"
    ) -> Calendar:
        """The number of future fires in each bucket; paused schedules are left out. Without `start` from now
        on, without `end` for a day."""
        begin, until = await self._range(start, end)
        if bucket not in BUCKETS:
            raise InvalidInput("bucket", f"{bucket!r} is not one of {', '.join(BUCKETS)}")
        if (until - begin) // BUCKETS[bucket] > MAX_BUCKETS:
            raise InvalidInput(
                "bucket",
                f"{bucket} makes more than {MAX_BUCKETS:,} buckets: use a larger one, or a shorter range",
            )
        zone.load(tz)
        tally = FireCounter(Grid(begin, until, BUCKETS[bucket], tz, since=await self.context.now()))
        async for page in self._coming():
            for one in page:
                tally.add(one)
        late = await off_loop(self._count, tally)
        return _calendar(begin, until, tally, INCOMPLETE if late else None)

    async def fires(
        self,
        start: datetime | None = None,
        end: datetime | None = None,
        limit: int = 100,
        after: tuple[datetime, UUID] | None = None,
    ) -> FirePage:
        """The single fires, earliest first; `after` is the `next` of the previous page."""
        begin, until = await self._range(start, end)
        check_count(limit, "limit")
        begin = max(begin, await self.context.now())
        place = None if after is None else (to_micros(after[0]), after[1])
        coming = [one async for page in self._coming() for one in page]
        steps = MAX_STEPS + STEPS_PER_SCHEDULE * len(coming)
        found = await off_loop(bounded, steps, lambda: _first_fires(coming, begin, until, place, limit + 1))
        last = found[limit - 1] if len(found) > limit else None
        return FirePage(found[:limit], None if last is None else (last.at, last.schedule_id))

    async def _range(self, start: datetime | None, end: datetime | None) -> tuple[Micros, Micros]:
        begin = await self.context.now() if start is None else read(start, "from")
        until = begin + 24 * 3_600 * SECOND if end is None else read(end, "to")
        if until <= begin:
            raise InvalidInput("to", "must be later than `from`")
        if until - begin > MAX_SPAN:
            raise InvalidInput("to", f"must be at most {MAX_SPAN // (86_400 * SECOND)} days after `from`")
        return begin, until

    async def _coming(self) -> AsyncIterator[list[Coming]]:
        wanted, after = ScheduleFilter(self.context.tenant, paused=False), None
        while page := await self.context.store.list_schedules(wanted, PAGE, after):
            yield await off_loop(_all_coming, page)
            after = page[-1].draft.name

    def _count(self, tally: FireCounter) -> bool:
        """True if counting all took too long."""
        deadline, late = self.context.clock.monotonic() + COUNTING_TIMEOUT, False
        while tally.work(STEPS):
            if not late and self.context.clock.monotonic() > deadline:
                tally.hurry()
                late = True
        return late


def _all_coming(page: list[Schedule]) -> list[Coming]:
    return [one for schedule in page if (one := Coming.of(schedule)) is not None]


def _first_fires(
    coming: list[Coming], begin: Micros, until: Micros, place: tuple[Micros, UUID] | None, count: int
) -> list[CalendarFire]:
    heads = [head for one in coming if (head := _head(one, begin, until, place)) is not None]
    heapify(heads)
    found: list[CalendarFire] = []
    while heads and len(found) < count:
        at, number, one = heads[0]
        found.append(CalendarFire(to_datetime(at), one.id, one.name, one.target))
        following = one.next(at, until)
        if following is None:
            heappop(heads)
        else:
            heapreplace(heads, (following, number, one))
    return found


def _calendar(begin: Micros, until: Micros, tally: FireCounter, note: str | None) -> Calendar:
    buckets = [(to_datetime(at), count) for at, count in tally.result()]
    return Calendar(to_datetime(begin), to_datetime(until), buckets, note is None, note)


def _head(
    one: Coming, start: Micros, end: Micros, after: tuple[Micros, UUID] | None
) -> tuple[Micros, int, Coming] | None:
    """Its first fire on this page."""
    begin = start - 1
    if after is not None:
        begin = max(begin, after[0] if one.id <= after[1] else after[0] - 1)
    moment = one.next(begin, end)
    return None if moment is None else (moment, one.id.int, one)

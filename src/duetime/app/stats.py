"""Looking on: statistics of the fleet, and what happens in it as it happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from duetime.app.audience import Audience, Notice
from duetime.app.client import Client
from duetime.app.statistics import Stats
from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND, Micros
from duetime.observers.entries import KINDS
from duetime.observers.tally import MINUTE
from duetime.observers.watch import Watch

LONGEST = 24 * 3_600 * SECOND
MOST_POINTS = 1_440


class Watching(Client):
    async def stats(self, since: Duration = "1h", step: Duration = "1m") -> Stats:
        """What is alive now, what the fleet did during `since` in steps of so long, what fails, what is late and what comes next.

        A process tells of its counts every ten seconds; those of one that was killed are lost since the last time."""
        self._require_open()
        wanted = check_times(since, step)
        return await self._statistics.read(self._tenant, *wanted, await self._commands.now(), self._own_watch())

    async def events(self, types: Iterable[str] = KINDS, after: int | None = None) -> AsyncGenerator[Notice, None]:
        """What happens in the fleet from now on, or after the event with this id: changes of jobs, schedules, nodes and queues."""
        self._require_open()
        seat, position = await self._audience.attend(self._tenant, check_types(types))
        try:
            async with aclosing(self._audience.notices(seat, position, after)) as notices:
                async for notice in notices:
                    yield notice
        finally:
            seat.leave()

    @property
    def audience(self) -> Audience:
        """For whoever wants to listen in other ways than by iterating."""
        return self._audience

    def _own_watch(self) -> Watch | None:
        """Of this process, where there is one: it knows what is not written down yet."""
        return None


def check_types(types: Iterable[str]) -> frozenset[str]:
    wanted = frozenset(types)
    if unknown := sorted(wanted - set(KINDS)):
        raise InvalidInput("types", f"{unknown[0]!r} is not one of {', '.join(KINDS)}")
    if not wanted:
        raise InvalidInput("types", f"must name one or more of {', '.join(KINDS)}")
    return wanted


def check_times(since: Duration, step: Duration) -> tuple[Micros, Micros]:
    lapse, part = duration.positive(since, "since"), duration.positive(step, "step")
    if lapse > LONGEST:
        raise InvalidInput("since", "is too long ago: counts are kept for a day, use 24h or less")
    if part % MINUTE or part > LONGEST:
        raise InvalidInput("step", "must be whole minutes, up to 24h: counts are kept by the minute")
    if lapse // part > MOST_POINTS:
        raise InvalidInput("step", f"would give more than {MOST_POINTS:,} points: use a longer one")
    return lapse, part

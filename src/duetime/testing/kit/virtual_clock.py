"""The clock of virtual time: it stands still while code runs, and jumps to the next event when everything
waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from selectors import BaseSelector
from typing import Any, Protocol

from duetime.model.instant import SECOND, Micros
from duetime.testing.kit.io_grace import IoGrace
from duetime.testing.kit.virtual_loop import VirtualLoop

MARGIN = 0.25 / SECOND  # seconds between a timer and the instant at which it runs
MAX_BUSY_ITERATIONS = 10_000  # of the loop without any wait; after that, time creeps forward


class Stuck(RuntimeError):
    """Code waits for something that can never happen."""


class NextEvent(Protocol):
    """Knows when the engine has something to do, so that its polling in between can be skipped."""

    def is_polling(self, timer: asyncio.TimerHandle) -> bool:
        """Whether this timer only makes the engine check for work."""
        ...

    def next(self) -> tuple[Micros | None, bool]:
        """The next instant with something to do, and whether work is so near that no timer may be skipped."""
        ...


@dataclass(slots=True)
class Wait:
    future: asyncio.Future[bool]
    is_done: Callable[[], bool]
    deadline: float | None


class VirtualClock:
    """Controls a loop between `attach` and `detach`; the next loop continues at the same virtual instant."""

    def __init__(self, start: Micros, next_event: NextEvent, io_grace: float) -> None:
        self._next_event = next_event
        self._grace = IoGrace(io_grace)
        self._attached: VirtualLoop | None = None
        self._base = start
        self._origin = self._now = 0.0  # on the loop's clock: at `attach`, and now
        self._waits: list[Wait] = []
        self._busy_iterations = 0  # since the last jump
        self.moved: Callable[[], object] = lambda: None

    @property
    def attached(self) -> VirtualLoop | None:
        return self._attached

    @property
    def loop(self) -> VirtualLoop:
        assert self._attached is not None
        return self._attached

    @property
    def now(self) -> float:
        return self._now

    def micros(self) -> Micros:
        # Rounded: the float nearest to a whole microsecond may lie just below it.
        return self._base + round((self._now - self._origin) * SECOND)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        virtual_loop = VirtualLoop.adopt(loop)
        now = virtual_loop.time()
        virtual_loop.attach(self)
        self._attached, self._origin, self._now = virtual_loop, now, now
        self._grace.begin()

    def detach(self) -> None:
        if self._attached is None:
            return
        self._attached.detach()
        self._attached = None
        self._base = self.micros()
        self._origin = self._now

    async def until(self, is_done: Callable[[], bool], deadline: Micros | None = None) -> bool:
        """Wait until `is_done()` after everything that can happen at that instant; False if the deadline
        comes first."""
        wait = Wait(self.loop.create_future(), is_done, None if deadline is None else self._seconds(deadline))
        self._waits.append(wait)
        try:
            return await wait.future
        finally:
            self._waits.remove(wait)

    # -- called by the loop ----------------------------------------------------------------------------------
    def timer_time(self, when: float) -> float:
        """Just before a whole microsecond. The clock stops at whole microseconds only, and asyncio runs
        timers that are before now: so timers are exact, even years ahead, where floats are coarse."""
        return self._rounded(when) - MARGIN

    def busy(self) -> None:
        """Code that polls the time without ever waiting sees it move, slowly."""
        self._busy_iterations += 1
        if self._busy_iterations > MAX_BUSY_ITERATIONS and self._busy_iterations % 100 == 0:
            self._now += 0.001
            self.moved()

    def idle(self, selector: BaseSelector) -> list[Any]:
        if events := selector.select(0) or self._grace.select(
            selector, self.loop.timers(), self._outside_tasks()
        ):
            return events
        if not self._complete_waits():
            when = self._next()
            if when is not None:
                self._jump(when)
            elif (
                self._grace.is_endless(selector, self.loop.timers(), self._outside_tasks())
                or not self._give_up()
            ):
                return selector.select(None)  # only input from outside can continue from here
        return []

    # -- internals -------------------------------------------------------------------------------------------
    def _open_waits(self) -> list[Wait]:
        return [wait for wait in self._waits if not wait.future.done()]

    def _complete_waits(self) -> bool:
        due = [
            wait
            for wait in self._open_waits()
            if wait.is_done() or (wait.deadline is not None and wait.deadline <= self._now)
        ]
        for wait in due:
            wait.future.set_result(wait.is_done())
        return bool(due)

    def _give_up(self) -> bool:
        waits = self._open_waits()
        for wait in waits:
            wait.future.set_exception(
                Stuck("nothing more can happen: no job is due, no schedule will fire, no code sleeps")
            )
        return bool(waits)

    def _next(self) -> float | None:
        """When something happens next. Timers of engine loops that only poll are skipped; they all run once
        that time has come."""
        times = [wait.deadline for wait in self._open_waits() if wait.deadline is not None]
        instant, near = self._next_event.next()
        if instant is not None:
            times.append(self._seconds(instant))
        times += [
            self._after(timer.when())
            for timer in self.loop.timers()
            if near or not self._next_event.is_polling(timer)
        ]
        return min(times, default=None)

    def _jump(self, when: float) -> None:
        self._busy_iterations = 0
        if when > self._now:
            self._now = when
            self.moved()

    def _rounded(self, when: float) -> float:
        return self._origin + round((when - self._origin) * SECOND) / SECOND

    def _after(self, when: float) -> float:
        """The instant at which a timer runs. One that is older than this clock may lie anywhere between two
        microseconds."""
        instant = self._rounded(when)
        return instant if instant - when > MARGIN / 2 else self._rounded(when + 1 / SECOND)

    def _seconds(self, instant: Micros) -> float:
        return self._origin + (instant - self._base) / SECOND

    def _outside_tasks(self) -> list[asyncio.Task[Any]]:
        """Without tasks that wait for virtual time itself."""
        waits = {id(wait.future) for wait in self._waits}
        return [
            task for task in self.loop.outside_tasks() if id(getattr(task, "_fut_waiter", None)) not in waits
        ]

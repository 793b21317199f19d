"""Virtual time for a loop of asyncio's own: when nothing is ready, its clock jumps to what comes next instead of waiting for it.

Relies on `_ready`, `_scheduled` and `_selector` of asyncio's loops, on `_callback`, `_args` and `_context` of their handles and on
`_fut_waiter` of tasks; tests/kit/test_takeover.py pins them. Sockets and threads go on working: they get some real time to answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from duetime.errors import ConfigError, Conflict
from duetime.model.instant import SECOND, Micros
from duetime.testing.kit.patience import Patience
from duetime.testing.kit.plain import outside_of
from duetime.testing.kit.processes import Processes
from duetime.testing.simulation.loop import Killed

RESTLESS = 10_000  # turns of the loop without any wait, after which time begins to creep
RESOLUTION = 1e-7  # seconds; a timer years ahead is further off than that by the rounding of floats


class Stuck(RuntimeError):
    """Somebody waits for what can never happen."""


class Horizon(Protocol):
    """What lies ahead for the engine, so that its looking around need not be lived through."""

    def idle(self, timer: asyncio.TimerHandle) -> bool:
        """Whether this timer only has somebody look whether there is something to do."""
        ...

    def next(self) -> tuple[Micros | None, bool]:
        """The instant from which on there will be something to do, and whether one is too near to pass over anything."""
        ...


class Wait:
    """Somebody waits for virtual time to bring something about."""

    def __init__(self, future: asyncio.Future[bool], done: Callable[[], bool], deadline: float | None) -> None:
        self.future = future
        self.done = done
        self.deadline = deadline


class Takeover:
    """A loop under virtual time from `begin` to `end`; the next one goes on where it ended."""

    def __init__(self, start: Micros, horizon: Horizon, patience: float) -> None:
        self._horizon = horizon
        self._patience = Patience(patience)
        self._loop: Any = None  # what is used of it is private
        self._selector: Any = None
        self._resolution = RESOLUTION
        self._base = start
        self._origin = self._now = 0.0
        self._waits: list[Wait] = []
        self.processes = Processes()
        self.moved: Callable[[], object] = lambda: None
        self.jumps = 0
        self._turns = 0  # of the loop since the last jump

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Which is taken over now."""
        return self._loop  # type: ignore[no-any-return]  # Any, see above

    def micros(self) -> Micros:
        # Rounded: the float nearest to a whole microsecond may lie just below it.
        return self._base + round((self._now - self._origin) * SECOND)

    # -- taking over --------------------------------------------------------------------------------------------------
    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if not isinstance(loop, asyncio.BaseEventLoop) or not hasattr(loop, "_selector"):
            raise ConfigError(
                f"virtual time needs a loop of asyncio's own, and this one is {type(loop).__module__}'s: "
                "let the tests run without it, or use testing.run(), which makes a loop itself"
            )
        if "time" in vars(loop):
            raise Conflict("this event loop is under virtual time already: one app at a time")
        self._loop = loop
        self._origin = self._now = loop.time()
        self._selector, self._resolution = self._loop._selector, self._loop._clock_resolution
        self._loop._selector = _Selector(self.select, self._selector)
        vars(loop).update(time=self._time, run_in_executor=self._run_here, _clock_resolution=RESOLUTION)
        self.processes.begin(loop)
        self._patience.begin()

    def end(self) -> None:
        """Give the loop back as it was, with the timers that are left as far ahead as they are now."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        self.processes.end()
        skipped = self._now - self._origin
        self._base += round(skipped * SECOND)
        self._origin = self._now
        del loop.time, loop.run_in_executor
        loop._selector, loop._clock_resolution = self._selector, self._resolution
        behind = self._now - loop.time()
        for timer in loop._scheduled:
            timer._when -= behind  # all by the same, so that the heap stays a heap

    def _time(self) -> float:
        return self._now

    # -- waiting ------------------------------------------------------------------------------------------------------
    async def until(self, done: Callable[[], bool], deadline: Micros | None = None) -> bool:
        """Until everything that can happen at this instant has happened and `done` says so; False when the deadline came first."""
        wait = Wait(self._loop.create_future(), done, None if deadline is None else self._seconds(deadline))
        self._waits.append(wait)
        try:
            return await wait.future
        finally:
            self._waits.remove(wait)

    def select(self, timeout: float | None) -> list[Any]:
        """In place of the selector's: called once a turn of the loop, with 0 when something is ready."""
        self.processes.bury()
        events: list[Any] = self._selector.select(0)
        if events or timeout == 0:
            self._creep()
            return events
        if events := self._patience.select(self._selector, self._timers(), self._waiting()):
            return events
        if not self._answer():
            moment = self._next()
            if moment is not None:
                self._jump(moment)
            elif self._patience.endless(self._selector, self._timers(), self._waiting()) or not self._give_up():
                return self._selector.select(None)  # type: ignore[no-any-return]  # only somebody outside can go on from here
        return []

    def _answer(self) -> bool:
        answered = [wait for wait in self._waits if wait.done() or (wait.deadline is not None and wait.deadline <= self._now)]
        for wait in answered:
            if not wait.future.done():
                wait.future.set_result(wait.done())
        return bool(answered)

    def _give_up(self) -> bool:
        for wait in self._waits:
            if not wait.future.done():
                wait.future.set_exception(Stuck("nothing more can happen: no job is due, no schedule will fire, nobody sleeps"))
        return bool(self._waits)

    def _next(self) -> float | None:
        """The moment at which something happens next. Timers that only look whether there is something to do are passed over, and ring
        together when it has come."""
        moments = [wait.deadline for wait in self._waits if wait.deadline is not None]
        instant, near = self._horizon.next()
        if instant is not None:
            moments.append(self._seconds(instant))
        moments += [timer.when() for timer in self._timers() if near or not self._horizon.idle(timer)]
        return min(moments, default=None)

    def _creep(self) -> None:
        """Whoever keeps looking at the clock without ever waiting sees it move, if slowly."""
        self._turns += 1
        if self._turns > RESTLESS and self._turns % 100 == 0:
            self._now += 0.001
            self.moved()

    def _jump(self, moment: float) -> None:
        self.jumps += 1
        self._turns = 0
        # To a whole microsecond, so that the errors of many small steps do not add up; but never short of the timer.
        whole = round((moment - self._origin) * SECOND)
        if self._origin + whole / SECOND < moment - RESOLUTION:
            whole += 1
        if self._origin + whole / SECOND > self._now:
            self._now = self._origin + whole / SECOND
            self.moved()

    def _seconds(self, instant: Micros) -> float:
        return self._origin + (instant - self._base) / SECOND

    def _timers(self) -> list[asyncio.TimerHandle]:
        return [timer for timer in self._loop._scheduled if not timer.cancelled()]

    def _waiting(self) -> list[asyncio.Task[Any]]:
        """Those who may wait for the world outside: attempts, and whoever belongs to no node, such as the test itself."""
        patient = {id(wait.future) for wait in self._waits}
        return [task for task in self.processes.outsiders() if id(getattr(task, "_fut_waiter", None)) not in patient]

    # -- threads ------------------------------------------------------------------------------------------------------
    def _run_here(self, executor: object, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Instead of in a thread: while time stands still nobody is held up, and the order of things is the same in every run."""
        future: asyncio.Future[Any] = self._loop.create_future()
        try:
            with outside_of(self._loop):
                answer = function(*arguments)
        except Killed:
            return future  # nobody is left to hear of it
        except KeyboardInterrupt:
            raise
        except BaseException as problem:
            future.set_exception(problem)
        else:
            future.set_result(answer)
        return future


class _Selector:
    """The loop's own selector, except that virtual time decides how long to wait."""

    def __init__(self, select: Callable[[float | None], list[Any]], real: Any) -> None:
        self.select = select
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

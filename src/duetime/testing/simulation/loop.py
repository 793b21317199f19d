"""A seeded, deterministic asyncio loop: virtual time, no sockets, no threads, and processes that can be killed and stopped.

Which ready callback runs next is drawn from one source of chance, so each choice is an interleaving decision and a seed is a history.
Relies on `_ready`, `_stopping` and `_run_once` of BaseEventLoop and on `_context` of Handle; tests/simulation/test_loop.py pins them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from enum import Enum
from heapq import heappop, heappush
from random import Random
from typing import Any, NoReturn, TypeVarTuple, Unpack
from warnings import catch_warnings, simplefilter

from duetime.model.instant import SECOND, Micros

CLOSE_TRIES = 50
Args = TypeVarTuple("Args")


class Deadlock(RuntimeError):
    """Nothing is ready, no timer is set: nothing can ever run again."""


class Killed(BaseException):
    """Thrown where a process dies in the middle of a step; nobody is left to see it."""


class Condition(Enum):
    ALIVE = "alive"
    PAUSED = "paused"
    DEAD = "dead"


class Process:
    """A set of callbacks that live and die together. Belonging is inherited: whatever a process starts is part of it."""

    def __init__(self, name: str, clock_offset: Micros = 0, clock_rate: float = 1.0) -> None:
        self.name = name
        self.condition = Condition.ALIVE
        self.held: list[asyncio.Handle] = []
        self.context = copy_context()
        self.context.run(_current.set, self)
        self._clock_offset = clock_offset
        self._clock_rate = clock_rate

    @property
    def dead(self) -> bool:
        return self.condition is Condition.DEAD

    def monotonic(self, virtual: Micros) -> Micros:
        """This machine's own clock: it began at some other moment and runs a little faster or slower."""
        return self._clock_offset + int(virtual * self._clock_rate)


_current: ContextVar[Process | None] = ContextVar("process", default=None)
NOBODY = Context()
"""The network and the store: callbacks in this context belong to no process and survive all of them."""


def current_process() -> Process | None:
    return _current.get()


class NumberedTask(asyncio.Task[Any]):
    """Hashes by number, not by address: sets of tasks are walked in the same order in every run."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = number
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class SimulationLoop(asyncio.BaseEventLoop):
    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.set_debug(False)
        self._ready: list[asyncio.Handle] = []  # a list, to take from anywhere
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []  # tuples, because timers compare slowly
        self._timer_count = 0
        self._stopping: bool
        self._random = chance.random
        self._now = 0.0
        self._tasks: list[NumberedTask] = []
        self.steps = 0
        self.failure: BaseException | None = None
        self.set_exception_handler(self._note_failure)

    # -- time ---------------------------------------------------------------------------------------------------------
    def time(self) -> float:
        return self._now

    def call_at(
        self, when: float, callback: Callable[[Unpack[Args]], object], *args: *Args, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timer_count += 1
        heappush(self._timers, (when, self._timer_count, timer))
        return timer

    def micros(self) -> Micros:
        # Rounded: the float nearest to a whole microsecond may lie just below it.
        return round(self._now * SECOND)

    # -- processes ----------------------------------------------------------------------------------------------------
    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> NumberedTask:
        task = NumberedTask(len(self._tasks), coro, loop=self, name=None if name is None else str(name), context=context)
        # Kept until the end: a coroutine that is collected runs its finally blocks, which no killed process would.
        self._tasks.append(task)
        return task

    def kill(self, process: Process) -> None:
        """As SIGKILL: none of its callbacks ever runs again."""
        process.condition = Condition.DEAD
        process.held.clear()

    def pause(self, process: Process) -> None:
        """As SIGSTOP: its callbacks wait while time goes on."""
        if process.condition is Condition.ALIVE:
            process.condition = Condition.PAUSED

    def resume(self, process: Process) -> None:
        if process.condition is Condition.PAUSED:
            process.condition = Condition.ALIVE
            self._ready.extend(process.held)
            process.held.clear()

    # -- running ------------------------------------------------------------------------------------------------------
    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers
        while not self._stopping:
            if not ready:
                self._advance()
            while timers and timers[0][0] <= self._now:
                self._promote(heappop(timers)[2])
            if ready:
                self._step(self._choose())

    def _choose(self) -> asyncio.Handle:
        ready = self._ready
        if len(ready) > 1:
            at = int(self._random() * len(ready))
            ready[at], ready[-1] = ready[-1], ready[at]
        return ready.pop()

    def _step(self, handle: asyncio.Handle) -> None:
        if handle.cancelled():
            return
        process = _process_of(handle)
        if process is None or process.condition is Condition.ALIVE:
            self.steps += 1
            handle._run()
        elif process.condition is Condition.PAUSED:
            process.held.append(handle)

    def _advance(self) -> None:
        """Jump to the next timer that anybody is left to hear."""
        timers = self._timers
        while timers and _unheard(timers[0][2]):
            heappop(timers)
        if not timers:
            raise Deadlock(f"nothing can ever run again at {self._now:.6f}s; unfinished: {self._unfinished()}")
        self._now = max(self._now, timers[0][0])

    def _promote(self, timer: asyncio.TimerHandle) -> None:
        if not timer.cancelled():
            self._ready.append(timer)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when they surface; nothing is counted."""

    def _unfinished(self) -> str:
        return ", ".join(task.get_name() for task in self._tasks if not task.done()) or "no task"

    # -- ending -------------------------------------------------------------------------------------------------------
    def _note_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        if isinstance(problem, Killed) or self.is_closed():
            return
        if self.failure is None:
            self.failure = problem or RuntimeError(context["message"])
        self.stop()

    def close(self) -> None:
        """Unwind what was killed or is unfinished, so that nothing is left to be collected later."""
        super().close()
        with catch_warnings():
            simplefilter("ignore", RuntimeWarning)  # what a killed process would have awaited next is never awaited
            for task in self._tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # the C task's switch, unknown to typeshed
                if not task.done():
                    _unwind(task.get_coro())
                elif not task.cancelled():
                    task.exception()  # seen: asyncio need not complain
            self._tasks.clear()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> NoReturn:  # type: ignore[override]  # always raises
        raise RuntimeError("threads are not allowed in a simulation")

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector that would have to be woken."""


def _unheard(timer: asyncio.TimerHandle) -> bool:
    if timer.cancelled():
        return True
    process = _process_of(timer)
    return process is not None and process.condition is Condition.DEAD


def _process_of(handle: asyncio.Handle) -> Process | None:
    context: Context = handle._context  # type: ignore[attr-defined]  # private, pinned by a test
    return context.get(_current)


def _unwind(coroutine: Any) -> None:
    """A finally block that awaits makes close() fail, one await further on."""
    for _ in range(CLOSE_TRIES):
        try:
            coroutine.close()
        except BaseException:  # noqa: S112  whatever it is, it happens after the end
            continue
        return

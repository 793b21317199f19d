"""A seeded, deterministic asyncio loop: virtual time, no sockets, no threads, and processes that can be
killed and paused.

The next callback is drawn at random from all that are ready, so the seed decides the interleaving. Relies on
`_ready`, `_stopping` and `_run_once` of BaseEventLoop and on `_context` of Handle;
tests/simulation/test_loop.py checks that they exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from heapq import heappop, heappush
from random import Random
from typing import Any, NoReturn, TypeVarTuple, Unpack
from warnings import catch_warnings, simplefilter

from duetime.model.instant import SECOND, Micros
from duetime.testing.processes import Condition, Killed, Process, discard, process_of

Args = TypeVarTuple("Args")


class Deadlock(RuntimeError):
    """No callback is ready and no timer is set: nothing can ever run again."""


class NumberedTask(asyncio.Task[Any]):
    """Hashes by number, not by address, so that sets of tasks have the same order in every run."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = number
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class SimulationLoop(asyncio.BaseEventLoop):
    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.set_debug(False)
        self._ready: list[asyncio.Handle] = []  # a list, because any item may be taken
        self._timers: list[
            tuple[float, int, asyncio.TimerHandle]
        ] = []  # tuples, because timers compare slowly
        self._timer_count = 0
        self._stopping: bool
        self._random = chance.random
        self._now = 0.0
        self._tasks: list[NumberedTask] = []
        self.steps = 0
        self.failure: BaseException | None = None
        self.set_exception_handler(self._record_failure)

    # -- time ------------------------------------------------------------------------------------------------
    def time(self) -> float:
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timer_count += 1
        heappush(self._timers, (when, self._timer_count, timer))
        return timer

    def micros(self) -> Micros:
        # Rounded: the float nearest to a whole microsecond may lie just below it.
        return round(self._now * SECOND)

    # -- processes -------------------------------------------------------------------------------------------
    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> NumberedTask:
        task = NumberedTask(
            len(self._tasks), coro, loop=self, name=None if name is None else str(name), context=context
        )
        # Kept until the end: garbage collection would run the finally blocks of killed processes.
        self._tasks.append(task)
        return task

    def kill(self, process: Process) -> None:
        """Like SIGKILL: no callback of the process ever runs again."""
        process.condition = Condition.DEAD
        process.held.clear()

    def pause(self, process: Process) -> None:
        """Like SIGSTOP: its callbacks wait while time goes on."""
        if process.condition is Condition.ALIVE:
            process.condition = Condition.PAUSED

    def resume(self, process: Process) -> None:
        if process.condition is Condition.PAUSED:
            process.condition = Condition.ALIVE
            self._ready.extend(process.held)
            process.held.clear()

    # -- running ---------------------------------------------------------------------------------------------
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
        process = process_of(handle)
        if process is None or process.condition is Condition.ALIVE:
            self.steps += 1
            handle._run()
        elif process.condition is Condition.PAUSED:
            process.held.append(handle)

    def _advance(self) -> None:
        """Jump to the next timer of a living process."""
        timers = self._timers
        while timers and _is_void(timers[0][2]):
            heappop(timers)
        if not timers:
            raise Deadlock(
                f"nothing can ever run again at {self._now:.6f}s; unfinished: {self._unfinished()}"
            )
        self._now = max(self._now, timers[0][0])

    def _promote(self, timer: asyncio.TimerHandle) -> None:
        if not timer.cancelled():
            self._ready.append(timer)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when they reach the top of the heap."""

    def _unfinished(self) -> str:
        return ", ".join(task.get_name() for task in self._tasks if not task.done()) or "no task"

    # -- ending ----------------------------------------------------------------------------------------------
    def _record_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        if isinstance(problem, Killed) or self.is_closed():
            return
        if self.failure is None:
            self.failure = problem or RuntimeError(context["message"])
        self.stop()

    def close(self) -> None:
        """Close the coroutines of killed and unfinished tasks, so that the garbage collector has nothing to
        run later."""
        super().close()
        with catch_warnings():
            simplefilter("ignore", RuntimeWarning)  # coroutines that a killed process was about to await
            for task in self._tasks:
                if not task.done():
                    discard(task)
                elif not task.cancelled():
                    task.exception()  # marks it as retrieved
            self._tasks.clear()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> NoReturn:  # type: ignore[override]  # always raises
        raise RuntimeError("threads are not allowed in a simulation")

    def _write_to_self(self) -> None:
        """There is no selector to wake up."""


def _is_void(timer: asyncio.TimerHandle) -> bool:
    if timer.cancelled():
        return True
    process = process_of(timer)
    return process is not None and process.condition is Condition.DEAD

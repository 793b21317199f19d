"""An event loop whose time can be virtual. Without a virtual clock it is asyncio's own selector loop.

With a clock attached, the clock decides what happens when nothing is ready: usually time jumps to the next
event. Sockets and threads keep working. The class overrides `_run_once` of asyncio's loop and reads the
members listed in `_SelectorLoop`; it changes none of them. tests/kit/test_virtual_loop.py checks that they
exist.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context
from functools import partial
from selectors import BaseSelector
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, TypeVarTuple, Unpack, cast

from duetime.errors import ConfigError, Conflict
from duetime.testing.kit.sync_bridge import call_outside_loop
from duetime.testing.processes import Condition, Process, current_process, discard, process_in, process_of

Answer = TypeVar("Answer")
Args = TypeVarTuple("Args")

if TYPE_CHECKING:

    class _SelectorLoop(asyncio.SelectorEventLoop):
        """The private members of asyncio's loop that VirtualLoop uses."""

        _ready: deque[asyncio.Handle]
        _scheduled: list[asyncio.TimerHandle]
        _selector: BaseSelector
        _stopping: bool

        def _run_once(self) -> None: ...
        def _process_events(self, events: list[Any]) -> None: ...

else:
    _SelectorLoop = asyncio.SelectorEventLoop


class LoopClock(Protocol):
    """Controls the time of a loop while it is attached to it."""

    @property
    def now(self) -> float:
        """In seconds on the scale of the loop's own clock."""
        ...

    def timer_time(self, when: float) -> float:
        """The time for a timer at `when` that this clock reaches exactly."""
        ...

    def busy(self) -> None:
        """Called once per iteration in which callbacks are ready."""
        ...

    def idle(self, selector: BaseSelector) -> list[Any]:
        """Called while nothing is ready. Moves time, completes a wait or returns events of the selector."""
        ...


class VirtualLoop(_SelectorLoop):
    # Defaults on the class, because an adopted loop has not been through __init__.
    _clock: LoopClock | None = None
    _ahead = 0.0  # seconds that virtual time has skipped: real time continues from there
    _tasks_of: dict[Process, set[asyncio.Task[Any]]]
    _earlier_tasks: set[asyncio.Task[Any]]  # older than the clock, such as a server that all tests share
    attempts: set[asyncio.Task[Any]]  # they run a task of the user at present

    @classmethod
    def adopt(cls, loop: asyncio.AbstractEventLoop) -> VirtualLoop:
        """The same loop, now of this class. Test runners make their loops themselves and share no way to
        choose the class; the subclass has no state that a loop made elsewhere lacks."""
        if isinstance(loop, VirtualLoop):
            return loop
        if not isinstance(loop, asyncio.SelectorEventLoop):
            raise ConfigError(
                f"virtual time needs asyncio's own event loop, but this one is from {type(loop).__module__}: "
                "run the tests on asyncio's loop, or use testing.run(), which makes its own loop"
            )
        kind = type(loop)
        loop.__class__ = cls if kind is asyncio.SelectorEventLoop else type(cls.__name__, (cls, kind), {})
        return cast(VirtualLoop, loop)

    # -- the clock -------------------------------------------------------------------------------------------
    def attach(self, clock: LoopClock) -> None:
        if self._clock is not None:
            raise Conflict("this event loop is already under virtual time: use one app at a time")
        self._earlier_tasks = asyncio.all_tasks(self) - {cast(Any, asyncio.current_task(self))}
        self._tasks_of, self.attempts = {}, set()
        self._clock = clock

    def detach(self) -> None:
        """Continue in real time. Timers keep their distance from now."""
        assert self._clock is not None
        self._ahead = self._clock.now - super().time()
        self._clock = None
        for process, tasks in self._tasks_of.items():
            if process.dead:
                for task in [*tasks]:
                    discard(task)
        self._cancel_dead_callbacks()  # closing a coroutine may have made callbacks of other dead tasks ready
        self._tasks_of.clear()

    def time(self) -> float:
        return super().time() + self._ahead if self._clock is None else self._clock.now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return super().call_at(
            when if self._clock is None else self._clock.timer_time(when), callback, *args, context=context
        )

    def timers(self) -> list[asyncio.TimerHandle]:
        return [timer for timer in self._scheduled if not timer.cancelled()]

    def _run_once(self) -> None:
        if self._clock is not None:
            self._cancel_dead_callbacks()
            if self._has_work():
                self._clock.busy()
            while self._clock is not None and not self._has_work():
                self._process_events(self._clock.idle(self._selector))
                self._cancel_dead_callbacks()
        super()._run_once()

    def _has_work(self) -> bool:
        return (
            bool(self._ready) or self._stopping or any(timer.when() < self.time() for timer in self.timers())
        )

    # -- processes -------------------------------------------------------------------------------------------
    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = super().create_task(coro, **options)
        if self._clock is not None and not task.done():
            context = options.get("context")
            process = current_process() if context is None else process_in(context)
            if process is not None:
                tasks = self._tasks_of.setdefault(process, set())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        return task

    def kill(self, process: Process) -> None:
        """Like SIGKILL: no callback of the process ever runs again."""
        process.condition = Condition.DEAD
        for timer in self.timers():
            if process_of(timer) is process:
                timer.cancel()
        self.attempts -= self._tasks_of.get(process, set())
        self._cancel_dead_callbacks()

    def outside_tasks(self) -> list[asyncio.Task[Any]]:
        """Tasks that may wait for sockets or threads: attempts, and everything younger than the clock that is
        not part of a node."""
        members = self._earlier_tasks.union(*self._tasks_of.values())
        return [task for task in asyncio.all_tasks(self) if task in self.attempts or task not in members]

    def _cancel_dead_callbacks(self) -> None:
        """A living process may have made callbacks of a dead one ready."""
        if any(process.dead for process in self._tasks_of):
            for handle in self._ready:
                process = process_of(handle)
                if process is not None and process.dead:
                    handle.cancel()

    # -- threads ---------------------------------------------------------------------------------------------
    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Args]], Answer], *args: *Args
    ) -> asyncio.Future[Answer]:
        """In virtual time on the loop's own thread: nothing else could run meanwhile, and the order is the
        same in every run."""
        if self._clock is None:
            return super().run_in_executor(executor, func, *args)
        return call_outside_loop(self, partial(func, *args))

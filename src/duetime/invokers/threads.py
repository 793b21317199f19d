"""Threads for plain functions. A thread that ignores interruption is abandoned and replaced.

A thread runs one call at a time. When the caller is cancelled, the function is first asked to stop and then
interrupted by an exception raised inside it. If it still runs after a bounded wait, the thread counts as
hung: it goes on alone, and another takes its place. All threads are daemons, so a hung one does not keep the
process alive.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from logging import getLogger
from queue import SimpleQueue
from typing import Any

STOP_TIMEOUT = 0.25  # seconds between asking and interrupting
INTERRUPT_TIMEOUT = (
    0.6  # seconds after that; both together are less than a worker waits for interrupted tasks at shutdown
)
_logger = getLogger("duetime.task")


class Interrupted(BaseException):
    """Raised inside a plain function whose attempt was cancelled, timed out or shut down. Do not catch it;
    clean up in `finally`."""


class ThreadCall:
    """One call of a function on a thread, with the caller's context variables, and its way back to the event
    loop."""

    __slots__ = ("done", "ended", "function", "loop", "problem", "result", "returned", "value")

    def __init__(self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.function: Callable[[], Any] = partial(copy_context().run, function)
        self.loop = loop
        self.result: asyncio.Future[Any] = loop.create_future()
        self.ended: asyncio.Future[None] | None = (
            None  # set by a caller that gave up on the result and only waits for the end
        )
        self.returned = False  # the thread is done with it
        self.done = False  # and the event loop knows
        self.value: Any = None
        self.problem: BaseException | None = None

    def run(self) -> None:
        """On the thread."""
        try:
            self.value = self.function()
        except (StopIteration, GeneratorExit) as problem:
            # A future cannot carry these two: it refuses one, and the other closes the coroutines that wait
            # for it.
            self.problem = RuntimeError(f"the task raised {problem!r}")
            self.problem.__cause__ = problem
        except BaseException as problem:
            self.problem = problem

    def report(self) -> None:
        """On the event loop."""
        self.done = True
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(None)
        if self.result.done():
            return
        if self.problem is None:
            self.result.set_result(self.value)
        else:
            self.result.set_exception(self.problem)

    async def ends(self, within: float) -> bool:
        if not self.done:
            self.ended = self.loop.create_future()
            await asyncio.wait([self.ended], timeout=within)
        return self.done


class PoolThread:
    """A thread of the pool."""

    def __init__(self, name: str, free: Callable[[PoolThread], None]) -> None:
        self._calls: SimpleQueue[ThreadCall | None] = SimpleQueue()
        self._free = free
        self._lock = threading.Lock()
        self._current: ThreadCall | None = None
        self._retired = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return self._thread.name

    def start(self, call: ThreadCall) -> None:
        self._current = call
        self._calls.put(call)

    def stop(self) -> None:
        """End the thread after its current call."""
        self._calls.put(None)

    def interrupt(self, call: ThreadCall) -> None:
        """Raise Interrupted in the function at its next step in Python. The thread is not used again: the
        exception may arrive late."""
        if self._retired:
            return
        with self._lock:
            if self._current is call and not call.returned and self._thread.ident is not None:
                self._retired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident), ctypes.py_object(Interrupted)
                )

    def _run(self) -> None:
        try:
            self._run_calls()
        except Interrupted as problem:
            # It arrived before the function's first step or after its last. It arrives once only, so this
            # code is safe from it.
            call = self._current
            if call is not None:
                call.problem = call.problem or problem
                self._finish(call)

    def _run_calls(self) -> None:
        while not self._retired:
            call = self._calls.get()
            if call is None:
                return
            call.run()
            self._finish(call)
            del call  # it holds the task's values, and the next call may come much later

    def _finish(self, call: ThreadCall) -> None:
        with self._lock:
            call.returned = True
        try:
            call.loop.call_soon_threadsafe(self._report, call)
        except RuntimeError:
            return  # the loop is closed, so the result is of no use

    def _report(self, call: ThreadCall) -> None:
        if not call.done:
            call.report()
            self._current = None
            if not self._retired:
                self._free(self)


class Threads:
    """A pool with one thread for each call that runs; idle threads wait for the next call. Use it from one
    event loop at a time."""

    def __init__(
        self,
        name: str = "duetime-task",
        stop_timeout: float = STOP_TIMEOUT,
        interrupt_timeout: float = INTERRUPT_TIMEOUT,
    ) -> None:
        self._name = name
        self._stop_timeout = stop_timeout
        self._interrupt_timeout = interrupt_timeout
        self._idle: list[PoolThread] = []
        self._started = 0
        self._closed = False
        self.hung = 0  # threads that were interrupted and still run

    async def run(
        self, function: Callable[[], Any], on_stop: Callable[[], None] = lambda: None, what: str = "a call"
    ) -> Any:
        """The function's result. When cancelled, this calls `on_stop` immediately and gives the thread a
        short time to end."""
        call = ThreadCall(function, asyncio.get_running_loop())
        thread = self._idle.pop() if self._idle else self._new_thread()
        thread.start(call)
        try:
            return await call.result
        except asyncio.CancelledError:
            if not call.done:
                on_stop()
                await self._stop(thread, call, what)
            raise

    def close(self) -> None:
        """Idle threads end now, the others after their call."""
        self._closed = True
        while self._idle:
            self._idle.pop().stop()

    def _new_thread(self) -> PoolThread:
        self._started += 1
        return PoolThread(f"{self._name}-{self._started}", self._free)

    def _free(self, thread: PoolThread) -> None:
        if self._closed:
            thread.stop()
        else:
            self._idle.append(thread)

    async def _stop(self, thread: PoolThread, call: ThreadCall, what: str) -> None:
        try:
            if not await call.ends(self._stop_timeout):
                thread.interrupt(call)
                await call.ends(self._interrupt_timeout)
        finally:
            if not call.done:
                thread.interrupt(call)
                self._abandon(thread, call, what)

    def _abandon(self, thread: PoolThread, call: ThreadCall, what: str) -> None:
        self.hung += 1
        _logger.warning(
            "thread %s ignores the interruption of %s: it is abandoned and replaced (%d hung now)",
            thread.name, what, self.hung,
        )  # fmt: skip

        def ended(_: asyncio.Future[None]) -> None:
            self.hung -= 1
            _logger.info("abandoned thread %s has ended (%s)", thread.name, what)

        call.ended = call.loop.create_future()
        call.ended.add_done_callback(ended)

"""Threads for plain functions. They can be told to stop, and one that does not listen is left behind and never missed.

A thread serves one call at a time. Whoever waits for a call and is cancelled has the thread interrupted: first politely, then by an
exception raised inside it. After a bounded wait the thread counts as hung: it goes on alone, another takes its place, and since all are
daemons it does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from logging import getLogger
from queue import SimpleQueue
from typing import Any

POLITE = 0.25  # seconds between asking and interrupting
PATIENCE = 0.6  # seconds after that; together less than what a worker that shuts down waits for the interrupted
_logger = getLogger("duetime.task")


class Interrupted(BaseException):
    """Raised inside a plain function whose attempt was cancelled, timed out or shut down. Let it pass; clean up in `finally`."""


class Errand:
    """One call, on its way through a thread and back."""

    __slots__ = ("answer", "call", "done", "ended", "loop", "over", "problem", "value")

    def __init__(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop
        self.answer: asyncio.Future[Any] = loop.create_future()
        self.ended: asyncio.Future[None] | None = None  # somebody has given up on the answer and waits for the end only
        self.over = False  # the thread is through with it
        self.done = False  # and the event loop knows
        self.value: Any = None
        self.problem: BaseException | None = None

    def carry_out(self) -> None:
        try:
            self.value = self.call()
        except (StopIteration, GeneratorExit) as problem:
            # A future cannot carry these two: one is refused by it, the other closes the coroutines that wait for it.
            self.problem = RuntimeError(f"the task raised {problem!r}")
            self.problem.__cause__ = problem
        except BaseException as problem:
            self.problem = problem

    def report(self) -> None:
        """On the event loop."""
        if self.done:
            return
        self.done = True
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(None)
        if self.answer.done():
            return
        if self.problem is None:
            self.answer.set_result(self.value)
        else:
            self.answer.set_exception(self.problem)


class Servant:
    """A thread of the pool."""

    def __init__(self, name: str, free: Callable[[Servant], None]) -> None:
        self._orders: SimpleQueue[Errand | None] = SimpleQueue()
        self._free = free
        self._lock = threading.Lock()
        self._current: Errand | None = None
        self._retired = False
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return self._thread.name

    def give(self, errand: Errand) -> None:
        self._current = errand
        self._orders.put(errand)

    def dismiss(self) -> None:
        self._orders.put(None)

    def interrupt(self, errand: Errand) -> None:
        """Raise Interrupted in the function, at its next step in Python. The thread is not used again: it may come late."""
        if self._retired:
            return
        with self._lock:
            if self._current is errand and not errand.over and self._thread.ident is not None:
                self._retired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(Interrupted))

    def _live(self) -> None:
        try:
            self._serve()
        except Interrupted as problem:
            # It struck outside the function: before its first step or after its last. It strikes once only, so this is safe from it.
            errand = self._current
            if errand is not None:
                errand.problem = errand.problem or problem
                self._finish(errand)

    def _serve(self) -> None:
        while not self._retired:
            errand = self._orders.get()
            if errand is None:
                return
            errand.carry_out()
            self._finish(errand)
            del errand  # holds the task's values, and the next order may be long in coming

    def _finish(self, errand: Errand) -> None:
        with self._lock:
            errand.over = True
        try:
            errand.loop.call_soon_threadsafe(self._back, errand)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _back(self, errand: Errand) -> None:
        if not errand.done:
            errand.report()
            self._current = None
            if not self._retired:
                self._free(self)


class Threads:
    """As many as there are calls at once; those that are done wait for the next. To be used from one event loop at a time."""

    def __init__(self, name: str = "duetime-task", polite: float = POLITE, patience: float = PATIENCE) -> None:
        self._name = name
        self._polite = polite
        self._patience = patience
        self._idle: list[Servant] = []
        self._hired = 0
        self._closed = False
        self.hung = 0  # told to stop, and still running

    async def run(self, call: Callable[[], Any], on_stop: Callable[[], None] = lambda: None, what: str = "a call") -> Any:
        """The call's result. When cancelled: `on_stop` at once, and the thread is given a moment to end."""
        errand = Errand(_in_context(call), asyncio.get_running_loop())
        servant = self._idle.pop() if self._idle else self._hire()
        servant.give(errand)
        try:
            return await errand.answer
        except asyncio.CancelledError:
            if not errand.done:
                on_stop()
                await self._stop(servant, errand, what)
            raise

    def close(self) -> None:
        """The idle ones end now, the others after their call."""
        self._closed = True
        while self._idle:
            self._idle.pop().dismiss()

    def _hire(self) -> Servant:
        self._hired += 1
        return Servant(f"{self._name}-{self._hired}", self._free)

    def _free(self, servant: Servant) -> None:
        if self._closed:
            servant.dismiss()
        else:
            self._idle.append(servant)

    async def _stop(self, servant: Servant, errand: Errand, what: str) -> None:
        try:
            if not await _ends(errand, self._polite):
                servant.interrupt(errand)
                await _ends(errand, self._patience)
        finally:
            if not errand.done:
                servant.interrupt(errand)
                self._give_up(servant, errand, what)

    def _give_up(self, servant: Servant, errand: Errand, what: str) -> None:
        self.hung += 1
        _logger.warning(
            "thread %s does not end although %s was told to stop: it goes on alone, another takes its place (%d hang now)",
            servant.name, what, self.hung,
        )  # fmt: skip

        def after_all(_: asyncio.Future[None]) -> None:
            self.hung -= 1
            _logger.info("thread %s has ended after all (%s)", servant.name, what)

        errand.ended = errand.loop.create_future()
        errand.ended.add_done_callback(after_all)


async def _ends(errand: Errand, within: float) -> bool:
    if not errand.done:
        errand.ended = errand.loop.create_future()
        await asyncio.wait([errand.ended], timeout=within)
    return errand.done


def _in_context(call: Callable[[], Any]) -> Callable[[], Any]:
    context = copy_context()
    return lambda: context.run(call)

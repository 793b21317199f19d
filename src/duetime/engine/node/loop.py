"""The one loop of the program. A loop body says what one turn does and how long to wait; the loop waits,
wakes and survives outages."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Protocol, TypeVar

from duetime.clock import Clock
from duetime.errors import StoreError
from duetime.model.events import TurnFailed, TurnRecovered
from duetime.model.instant import SECOND, Micros
from duetime.observer import Observers

MIN_WAIT = SECOND // 20
MAX_WAIT = 2 * SECOND
IMMEDIATELY: Micros = -1  # instead of a wait: the next turn comes before the event loop does anything else


class LoopBody(Protocol):
    """An agent noun: Planner, Reaper, Settler."""

    name: str

    async def run_once(self) -> Micros | None:
        """One turn. Returns how long to wait before the next; None means until woken."""
        ...


class Loop:
    """Runs one body until stopped. A turn that fails is repeated after a jittered, growing wait: bodies hold
    no half-done work."""

    def __init__(self, body: LoopBody, clock: Clock, observers: Observers) -> None:
        self.body = body
        self._clock = clock
        self._observers = observers
        self._waiting: asyncio.Future[None] | None = None
        self._woken = False
        self._stopping = False
        self._failed_turns = 0

    async def run(self) -> None:
        while not self._stopping:
            wait = await self._turn()
            if not self._stopping and wait != IMMEDIATELY:
                await self._wait(wait)

    def wake(self) -> None:
        """Have the next turn now. Called during a turn, it ends the following wait immediately."""
        self._woken = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def stop(self) -> None:
        """End after the present turn."""
        self._stopping = True
        self.wake()

    async def _turn(self) -> Micros | None:
        self._woken = False
        try:
            wait = await self.body.run_once()
            if self._failed_turns:
                self._failed_turns = 0
                self._observers(TurnRecovered(self.body.name))
            return wait
        except Exception as problem:
            self._failed_turns += 1
            ceiling = min(MIN_WAIT << min(self._failed_turns - 1, 10), MAX_WAIT)
            wait = int(ceiling * (0.5 + self._clock.noise() / 2))
            self._observers(TurnFailed(self.body.name, problem, wait, isinstance(problem, StoreError)))
            self._woken = False  # hints that keep coming must not turn an outage into a busy loop
            return wait

    async def _wait(self, wait: Micros | None) -> None:
        if self._woken or wait == 0:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = None if wait is None else loop.call_later(wait / SECOND, self._ring)
        try:
            await self._waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()

    def _ring(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


# An event loop in a daemon thread of its own.


Result = TypeVar("Result")


class LoopThread:
    def __init__(self, name: str) -> None:
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    async def start(self) -> None:
        self._thread.start()
        await asyncio.to_thread(self._ready.wait)

    async def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run this on the thread's loop and wait for it on the caller's."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        self._loop.call_soon(self._ready.set)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


# Tuning of the interpreter, so that the event loop runs without long pauses: fewer garbage collections, and
# shorter waits for threads that compute.


OBJECTS_BETWEEN_COLLECTIONS = 10_000
DEFAULT_SWITCH_INTERVAL = 0.005  # seconds
SWITCH_INTERVAL = 0.0005


def share_the_interpreter() -> None:
    """Jobs start in time while plain functions compute in threads of this process.

    By default a computing thread keeps the interpreter for 5 ms each time the event loop needs it, several
    times for each job. With one such thread jobs started 60 ms late on PostgreSQL and 0.8 s late on SQLite;
    with the shorter interval 2 or 3 ms (bench: beside). The computing thread loses a few percent at most. An
    interval that the program has set itself stays."""
    if sys.getswitchinterval() == DEFAULT_SWITCH_INTERVAL:
        sys.setswitchinterval(SWITCH_INTERVAL)


def spare_the_collector() -> None:
    """Only for processes that run a node and nothing else.

    A full collection reads every object: 50 ms for the modules of the service, during which no job starts.
    Frozen objects are not read again. By default a collection runs after every 700 new objects; jobs that run
    together were read again and again, for a tenth of a worker's time, and none of them was garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


@contextmanager
def without_collecting() -> Iterator[None]:
    """For code that creates thousands of objects that all stay: looking for garbage among them costs a sixth
    of the time and finds none. Not for code that awaits: the rest of the process needs the collector."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


# SIGINT and SIGTERM: the first asks for an orderly end, the second for an immediate one.


class Signals:
    """While entered, the first signal sets `received`; each further signal interrupts. If there is nothing to
    interrupt yet, `on_second` does it later."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self._second = asyncio.Event()
        self._interrupt: Callable[[], None] = lambda: None

    def __enter__(self) -> Signals:
        for number in self.NUMBERS:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self.NUMBERS:
            asyncio.get_running_loop().remove_signal_handler(number)

    def on_second(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        if self._second.is_set():
            interrupt()

    async def wait(self, ended: asyncio.Event) -> None:
        """Until a signal comes or the node has ended."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self.received, ended)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def wait_for_second(self, seconds: float) -> None:
        """For this long, or until another signal comes."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._second.wait(), seconds)

    def _on_signal(self) -> None:
        if self.received.is_set():
            self._second.set()
            self._interrupt()
        self.received.set()

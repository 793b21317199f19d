"""The one loop of the program. A loop body says what one turn does and how long to wait; the loop waits,
wakes and survives outages."""

from __future__ import annotations

import asyncio
from typing import Protocol

from duetime.clock import Clock
from duetime.errors import StoreError
from duetime.model.events import TurnFailed
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
            self._failed_turns = 0
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

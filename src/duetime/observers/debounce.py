"""A debouncer: runs some work once, a little later, however often it is asked for in the meantime."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from duetime.model.instant import SECOND, Micros


class Debouncer:
    """`work` returns the delay until its next run, or None to run again only when asked. No task exists while
    nothing is asked for."""

    def __init__(self, work: Callable[[], Awaitable[Micros | None]]) -> None:
        self._work = work
        self._timer: asyncio.Handle | None = None
        self._due = 0.0  # when the timer fires: not every event loop's handles say so
        self._running: asyncio.Task[None] | None = None
        self._asked: Micros | None = None  # the shortest delay asked for during a run

    def ask(self, within: Micros) -> None:
        """Run the work within this time. Call it on the event loop."""
        if self._running is not None:
            self._asked = within if self._asked is None else min(self._asked, within)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + within / SECOND
        if self._timer is None or self._due > due:
            self._cancel_timer()
            self._timer, self._due = loop.call_later(within / SECOND, self._start), due

    async def close(self) -> None:
        """Finish a run that has started. A run that was only asked for does not start."""
        self._cancel_timer()
        if self._running is not None:
            await asyncio.wait([self._running])
        self._cancel_timer()

    def _start(self) -> None:
        self._timer = self._asked = None
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        delay: Micros | None = None
        try:
            delay = await self._work()
        finally:
            self._running = None
            delays = [one for one in (delay, self._asked) if one is not None]
            if delays:
                self.ask(min(delays))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

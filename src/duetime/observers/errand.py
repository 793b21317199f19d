"""An errand: something to be done a little later, once, however often it is asked for meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from duetime.model.instant import SECOND, Micros


class Errand:
    """`work` answers after how long it wants to be run again; None: when it is asked for. There is no task while nothing is asked."""

    def __init__(self, work: Callable[[], Awaitable[Micros | None]]) -> None:
        self._work = work
        self._timer: asyncio.Handle | None = None
        self._due = 0.0  # when it rings: not every loop's handles tell
        self._running: asyncio.Task[None] | None = None
        self._wanted: Micros | None = None  # asked for while it was under way

    def ask(self, within: Micros) -> None:
        """On the event loop."""
        if self._running is not None:
            self._wanted = within if self._wanted is None else min(self._wanted, within)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + within / SECOND
        if self._timer is None or self._due > due:
            self._forget_timer()
            self._timer, self._due = loop.call_later(within / SECOND, self._start), due

    async def close(self) -> None:
        """What is under way is finished; what was asked for is not begun."""
        self._forget_timer()
        running = self._running
        if running is not None:
            await asyncio.wait([running])
        self._forget_timer()

    def _start(self) -> None:
        self._timer, self._wanted = None, None
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        again: Micros | None = None
        try:
            again = await self._work()
        finally:
            self._running = None
            if self._wanted is not None:
                again = self._wanted if again is None else min(again, self._wanted)
            if again is not None:
                self.ask(again)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

"""A bound on how long an answer may take. Every verb passes here, thousands a second, and nearly all are answered in time: so one timer
serves them all. When it rings, it looks whether anything is overdue, and if not yet, it is set anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf


class Deadline:
    def __init__(self, on_late: Callable[[], None]) -> None:
        self._on_late = on_late
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Handle | None = None
        self._rings_at = inf  # the timer: not every loop's handles tell
        self.at = inf  # on the clock of the event loop

    def begin(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self.at = loop.time() + seconds
        if self._timer is None or loop is not self._loop or self._rings_at > self.at:
            self.forget()
            self._loop = loop
            self._set()

    def end(self) -> None:
        """It was answered."""
        self.at = inf

    def forget(self) -> None:
        """For when the event loop may not be there any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _set(self) -> None:
        assert self._loop is not None
        self._timer, self._rings_at = self._loop.call_at(self.at, self._ring, self._loop), self.at

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self.at == inf:
            return
        if loop.time() < self.at:
            self._set()
        else:
            self._on_late()

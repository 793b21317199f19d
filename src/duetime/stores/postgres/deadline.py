"""A timeout for replies. Every call passes here, thousands a second, and nearly all are answered in time: so
one timer serves them all. When it fires, it checks whether a reply is overdue, and otherwise it is set
again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf


class Deadline:
    def __init__(self, on_late: Callable[[], None]) -> None:
        self._on_late = on_late
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Handle | None = None
        self._timer_at = inf  # kept here: not every loop's handles have it
        self.at = inf  # on the clock of the event loop

    def begin(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self.at = loop.time() + seconds
        if self._timer is None or loop is not self._loop or self._timer_at > self.at:
            self.forget()
            self._loop = loop
            self._set()

    def end(self) -> None:
        """The reply came."""
        self.at = inf

    def forget(self) -> None:
        """Before the event loop ends."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _set(self) -> None:
        assert self._loop is not None
        self._timer, self._timer_at = self._loop.call_at(self.at, self._check, self._loop), self.at

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self.at == inf:
            return
        if loop.time() < self.at:
            self._set()
        else:
            self._on_late()

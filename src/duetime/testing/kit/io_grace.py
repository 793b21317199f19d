"""Real time for real input and output: sockets and threads cannot be hurried, so virtual time stands still
while one may answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from selectors import BaseSelector
from typing import Any


class IoGrace:
    """Grants real time to tasks that wait for neither a timer nor virtual time. Each wait gets it once: if
    nothing arrives by then, the wait is taken for one that virtual time must end."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._threads = 0
        self._granted: dict[
            int, asyncio.Future[Any]
        ] = {}  # holds the futures, so that no other future gets the same id

    def begin(self) -> None:
        self._threads = threading.active_count()
        self._granted.clear()

    def select(
        self,
        selector: BaseSelector,
        timers: Iterable[asyncio.TimerHandle],
        tasks: Iterable[asyncio.Task[Any]],
    ) -> list[Any]:
        """Events that arrive within the grace, if a task may wait for one."""
        futures = self._may_wait_for_io(timers, tasks) if self._has_io(selector) else []
        events: list[Any] = selector.select(self._seconds) if futures else []
        if not events:
            self._granted |= {id(future): future for future in futures}
        return events

    def is_endless(
        self,
        selector: BaseSelector,
        timers: Iterable[asyncio.TimerHandle],
        tasks: Iterable[asyncio.Task[Any]],
    ) -> bool:
        """Whether a task may still get an answer, with no limit on the time it takes."""
        self._granted.clear()
        return self._has_io(selector) and bool(self._may_wait_for_io(timers, tasks))

    def _has_io(self, selector: BaseSelector) -> bool:
        """Whether there is a socket besides the loop's own, or a new thread."""
        return len(selector.get_map()) > 1 or threading.active_count() > self._threads

    def _may_wait_for_io(
        self, timers: Iterable[asyncio.TimerHandle], tasks: Iterable[asyncio.Task[Any]]
    ) -> list[asyncio.Future[Any]]:
        timed = {id(argument) for timer in timers for argument in timer._args or ()}
        futures = [getattr(task, "_fut_waiter", None) for task in tasks]
        return [
            future
            for future in futures
            if future is not None and id(future) not in timed and id(future) not in self._granted
        ]

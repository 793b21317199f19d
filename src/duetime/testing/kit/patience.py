"""Who waits for the world outside: an answer from a socket or a thread cannot be hurried, so virtual time lets it come."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any


class Patience:
    """Gives real time to whoever waits for neither a timer nor virtual time, once for each wait: what did not come by then is taken
    for something that virtual time must bring about."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._threads = 0
        self._waited_for: dict[int, asyncio.Future[Any]] = {}  # kept, so that no other future can have their ids

    def begin(self) -> None:
        self._threads = threading.active_count()
        self._waited_for.clear()

    def select(self, selector: Any, timers: Iterable[asyncio.TimerHandle], waiting: Iterable[asyncio.Task[Any]]) -> list[Any]:
        """What came from outside, if anybody waits for it."""
        if not self._world(selector):
            return []
        futures = self._unexplained(timers, waiting)
        events: list[Any] = selector.select(self._seconds) if futures else []
        if not events:
            self._waited_for |= {id(future): future for future in futures}
        return events

    def endless(self, selector: Any, timers: Iterable[asyncio.TimerHandle], waiting: Iterable[asyncio.Task[Any]]) -> bool:
        """Whether somebody may still hear from outside, however long it takes."""
        self._waited_for.clear()
        return self._world(selector) and bool(self._unexplained(timers, waiting))

    def _world(self, selector: Any) -> bool:
        """Whether there is an outside at all: a socket beside the loop's own, or a thread that was not there before."""
        return len(selector.get_map()) > 1 or threading.active_count() > self._threads

    def _unexplained(self, timers: Iterable[asyncio.TimerHandle], tasks: Iterable[asyncio.Task[Any]]) -> list[asyncio.Future[Any]]:
        timed = {id(argument) for timer in timers for argument in timer._args or ()}
        futures = [getattr(task, "_fut_waiter", None) for task in tasks]
        return [future for future in futures if future is not None and id(future) not in timed and id(future) not in self._waited_for]

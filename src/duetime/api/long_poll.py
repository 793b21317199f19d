"""Long polls: requests that the service holds until a job is final or due, the wait ends, the client
disconnects, or the service stops."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from starlette.requests import Request

from duetime.api.caller import Identity
from duetime.clock import monotonic_micros
from duetime.errors import InvalidInput, WaitTimeout
from duetime.model import duration
from duetime.model.fairness import share
from duetime.model.instant import SECOND, Micros

MAX_WAIT = 60 * SECOND
MAX_PER_KEY = 200
MAX_PER_PROCESS = 500  # leaves connections for other requests; one tenant alone may hold 400
HELD = "held"  # in the state of a request: the time it was held, which does not count as its duration


class LongPolls:
    def __init__(self) -> None:
        self._open: Counter[Identity] = Counter()
        self._stopping = asyncio.Event()

    def __len__(self) -> int:
        return self._open.total()

    def stop(self) -> None:
        """Answer all held requests, and hold no more."""
        self._stopping.set()

    def full(self, identity: Identity) -> bool:
        held = sum(number for (tenant, _), number in self._open.items() if tenant == identity[0])
        return self._open[identity] >= MAX_PER_KEY or not share(held, MAX_PER_PROCESS - len(self))

    async def hold(self, until: Coroutine[Any, Any, object], request: Request, identity: Identity) -> bool:
        """Wait for `until`; if too many requests are held already, return immediately. Returns whether
        waiting again makes sense: `until` ended, and the client is still there."""
        if self._stopping.is_set() or self.full(identity):
            until.close()
            return False
        began = monotonic_micros()
        self._open[identity] += 1
        try:
            with suppress(WaitTimeout):
                return await _first(until, disconnected(request.receive), self._stopping.wait())
            return True
        finally:
            self._open[identity] -= 1
            if not self._open[identity]:
                del self._open[identity]
            setattr(request.state, HELD, getattr(request.state, HELD, 0) + monotonic_micros() - began)


def parse_wait(wait: str) -> Micros:
    micros = duration.parse(wait, "wait")
    if micros > MAX_WAIT:
        raise InvalidInput(
            "wait", f"{wait} is longer than {duration.show(MAX_WAIT)}: repeat the request after its answer"
        )
    return micros


async def disconnected(receive: Any) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(*ways: Coroutine[Any, Any, object]) -> bool:
    """Whether the first way was the first to end."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return done == {tasks[0]}
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

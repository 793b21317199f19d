"""Requests that are held: answered when what they wait for has happened, when their time is up, or when there is no point in waiting."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from starlette.requests import Request

from duetime.clock import monotonic_micros
from duetime.errors import InvalidInput, WaitTimeout
from duetime.model import duration
from duetime.model.instant import SECOND

LONGEST = 60 * SECOND
MOST_OF_ONE = 200  # requests of one key
MOST = 400  # of this process: others need connections, too
HELD = "held"  # in a request's state: for how long, which is not time it took us

Who = tuple[str, str | None]


class Held:
    """How many there are, by who waits."""

    def __init__(self) -> None:
        self._open: Counter[Who] = Counter()
        self._stopping = asyncio.Event()

    def __len__(self) -> int:
        return self._open.total()

    def stop(self) -> None:
        """Whoever waits is answered now, and nobody waits any more."""
        self._stopping.set()

    async def until(self, over: Coroutine[Any, Any, object], request: Request, who: Who) -> None:
        """Until `over` is, the sender has gone or the service stops; where too many wait already, not at all."""
        if self._stopping.is_set() or self._open[who] >= MOST_OF_ONE or len(self) >= MOST:
            over.close()
            return
        began = monotonic_micros()
        self._open[who] += 1
        try:
            with suppress(WaitTimeout):
                await _first(over, _gone(request), self._stopping.wait())
        finally:
            self._leave(who)
            setattr(request.state, HELD, monotonic_micros() - began)

    def _leave(self, who: Who) -> None:
        self._open[who] -= 1
        if not self._open[who]:
            del self._open[who]


def longest(wait: str) -> int:
    micros = duration.parse(wait, "wait")
    if micros > LONGEST:
        raise InvalidInput("wait", f"{wait} is longer than {duration.show(LONGEST)}: ask again when the answer has come")
    return micros


async def _first(*ways: Coroutine[Any, Any, object]) -> None:
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

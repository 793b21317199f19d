"""Plain functions in virtual time: called right where a thread would have been asked to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from duetime.invokers.threads import Errand, Threads, _in_context
from duetime.testing.kit.plain import outside_of
from duetime.testing.simulation.loop import Killed


class HereAndNow(Threads):
    """On the test's own thread, so that connections and transactions bound to it can be used, and in the same order in every run."""

    async def run(self, call: Callable[[], Any], on_stop: Callable[[], None] = lambda: None, what: str = "a call") -> Any:
        loop = asyncio.get_running_loop()
        errand = Errand(_in_context(call), loop)
        with outside_of(loop):
            errand.carry_out()
        if isinstance(errand.problem, KeyboardInterrupt):
            raise errand.problem
        if not isinstance(errand.problem, Killed):
            errand.report()
        return await errand.answer

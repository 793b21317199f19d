"""Sync functions in virtual time: called on the test's own thread instead of in a thread pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

from duetime.invokers.threads import Threads
from duetime.testing.kit.sync_bridge import call_outside_loop


class InlineThreads(Threads):
    """Connections and transactions bound to the test's thread can be used, and the order is the same in every
    run."""

    async def run(
        self, call: Callable[[], Any], on_stop: Callable[[], None] = lambda: None, what: str = "a call"
    ) -> Any:
        return await call_outside_loop(asyncio.get_running_loop(), partial(copy_context().run, call))

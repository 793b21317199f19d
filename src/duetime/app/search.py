"""Searches for fires: on threads of their own, so that the event loop is never blocked, and bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from duetime.model.rrule_search import StepBudget

MAX_STEPS = 400_000  # of recurrence rules: about a second
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
# Few, and not the threads that resolve names and read files: slow searches delay other searches only.
_threads = ThreadPoolExecutor(2, "duetime-search")


async def off_loop(
    work: Callable[Parameters, Result], *arguments: Parameters.args, **options: Parameters.kwargs
) -> Result:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, partial(work, *arguments, **options))


def end_threads() -> None:
    """They would wait for more to do. The process ends."""
    _threads.shutdown(wait=False, cancel_futures=True)


async def search(
    work: Callable[Parameters, Result], *arguments: Parameters.args, **options: Parameters.kwargs
) -> Result:
    """Raises InvalidWhen when recurrence rules need too many steps."""
    return await off_loop(bounded, MAX_STEPS, partial(work, *arguments, **options))


def bounded(steps: int, work: Callable[[], Result]) -> Result:
    with StepBudget(steps):
        return work()

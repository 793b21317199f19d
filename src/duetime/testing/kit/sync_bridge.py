"""Calls between sync and async code on one thread: sync code sees no running loop, as in a thread pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from duetime.testing.processes import Killed

Answer = TypeVar("Answer")


def call_outside_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], Answer]) -> asyncio.Future[Answer]:
    """Call a sync function here and now, as a thread would. The future is done, unless the function killed
    its own process."""
    future: asyncio.Future[Answer] = loop.create_future()
    try:
        with _outside(loop):
            answer = call()
    except Killed:
        return future
    except KeyboardInterrupt:
        raise
    except (StopIteration, GeneratorExit) as problem:
        # A future refuses the first of these, and the second would close the coroutines that wait for it.
        error = RuntimeError(f"the function raised {problem!r}")
        error.__cause__ = problem
        future.set_exception(error)
    except BaseException as problem:
        future.set_exception(problem)
    else:
        future.set_result(answer)
    return future


@contextmanager
def _outside(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Sync code sees no running loop, as in a thread: it may call asyncio.run, and frameworks that refuse to
    block a loop work."""
    task = asyncio.current_task(loop)
    if task is not None:
        asyncio.tasks._leave_task(loop, task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
        if task is not None:
            asyncio.tasks._enter_task(loop, task)


@contextmanager
def inside_loop(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The reverse: sync code that was called outside the loop runs one step of a coroutine in it."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(before)

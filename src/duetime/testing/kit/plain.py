"""Plain code on the loop's own thread, and coroutines that never wait: each as if it were where it belongs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class Suspended(RuntimeError):
    """A coroutine that was to be carried out in one step waits for something."""


def in_one_step(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    """Carry out a coroutine that awaits nothing, such as a verb of the memory store."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # what the coroutine returns
    coroutine.close()
    raise Suspended(f"{getattr(coroutine, '__qualname__', coroutine)} waits for something, and nobody here can wait: await it")


@contextmanager
def outside_of(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Plain code sees no running loop, as in a thread of its own: it may call asyncio.run, and frameworks that refuse to block a loop
    let it work."""
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
def inside_of(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The way back, for one step of a coroutine that plain code asks for."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(before)

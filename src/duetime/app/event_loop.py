"""The event loop of a process that runs a node and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from traceback import StackSummary
from types import CoroutineType, FrameType
from typing import Any
from weakref import WeakSet

from duetime.engine.run.perform import perform

STUBBORN_TIMEOUT_SECONDS = 1.0
STUBBORN = "%s ignores its cancellation: the %s ends without it. Stack:\n%s"

_logger = logging.getLogger("duetime")
_named: WeakSet[asyncio.Task[Any]] = WeakSet()


def run_in_new_loop(main: Coroutine[Any, Any, None]) -> None:
    """As asyncio.run, which waits for every task and thread. Here one that does not end, because it swallows
    its cancellation or blocks, does not keep the process: its job was given back."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            runner.run(main)
        finally:
            runner.run(_let_go())


async def _let_go() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        _, stubborn = await asyncio.wait(others, timeout=STUBBORN_TIMEOUT_SECONDS)
        name_stubborn(stubborn, "process")
        for task in stubborn:
            asyncio._unregister_task(task)
    # The calls of asyncio.to_thread: the loop waits for its executor when it is closed.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


def name_stubborn(tasks: Iterable[asyncio.Task[Any]], what: str) -> None:
    """Log which job does not end, and where it waits; once, when its node or the process ends."""
    for task in tasks:
        if task not in _named and not task.done():
            _named.add(task)
            frames = list(_frames(task))
            _logger.error(STUBBORN, _name(frames), what, _shown(frames))


def _name(frames: list[FrameType]) -> str:
    job = next((frame.f_locals["job"] for frame in frames if frame.f_code is perform.__code__), None)
    return "a task" if job is None else f"task {job.target} of job {job.id}"


def _shown(frames: list[FrameType]) -> str:
    return "".join(StackSummary.extract((frame, frame.f_lineno) for frame in frames).format()).rstrip()


def _frames(task: asyncio.Task[Any]) -> Iterator[FrameType]:
    awaited: Any = task.get_coro()
    while isinstance(awaited, CoroutineType) and awaited.cr_frame is not None:
        yield awaited.cr_frame
        awaited = awaited.cr_await


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop

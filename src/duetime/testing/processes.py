"""Simulated processes on one event loop. A killed process runs nothing more, not even a finally block. Used
by kit and simulation."""

from __future__ import annotations

import asyncio
from contextvars import Context, ContextVar, copy_context
from enum import Enum
from typing import Any

from duetime.model.instant import Micros

MAX_CLOSE_TRIES = 50


class Killed(BaseException):
    """Thrown where a process dies in the middle of a step. No code of the process sees it."""


class Condition(Enum):
    ALIVE = "alive"
    PAUSED = "paused"
    DEAD = "dead"


class Process:
    """Callbacks that live and die together. Membership is inherited: everything that a process starts belongs
    to it."""

    def __init__(self, name: str, clock_offset: Micros = 0, clock_rate: float = 1.0) -> None:
        self.name = name
        self.condition = Condition.ALIVE
        self.held: list[asyncio.Handle] = []  # callbacks that became ready while it is paused
        self.context = copy_context()
        self.context.run(_current.set, self)
        self._clock_offset = clock_offset
        self._clock_rate = clock_rate

    @property
    def dead(self) -> bool:
        return self.condition is Condition.DEAD

    def monotonic(self, virtual: Micros) -> Micros:
        """The clock of this machine: it has its own starting point and runs slightly fast or slow."""
        return self._clock_offset + int(virtual * self._clock_rate)


_current: ContextVar[Process | None] = ContextVar("process", default=None)
NO_PROCESS = Context()
"""The context of the network and the store: callbacks in it belong to no process and survive all of them."""


def current_process() -> Process | None:
    return _current.get()


def process_in(context: Context) -> Process | None:
    return context.get(_current)


def process_of(handle: asyncio.Handle) -> Process | None:
    context: Context = handle._context  # type: ignore[attr-defined]  # private, pinned by a test
    return context.get(_current)


def discard(task: asyncio.Task[Any]) -> None:
    """Close the coroutine of a killed task. From now on the loop does not know the task: cancelling it would
    run its code."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # the C task's switch, unknown to typeshed
    asyncio.tasks._unregister_task(task)
    coroutine: Any = task.get_coro()
    for _ in range(
        MAX_CLOSE_TRIES
    ):  # a finally block that awaits makes close() fail, one await later each time
        try:
            coroutine.close()
        except BaseException:  # noqa: S112  any exception here comes after the end of the process
            continue
        return

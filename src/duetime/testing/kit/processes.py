"""Nodes on one loop that die as by SIGKILL: nothing of them ever runs again, not even a finally block, until the test is over."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from duetime.testing.simulation.loop import Condition, Process, _current, _process_of, _unwind, current_process


class Processes:
    """Which tasks of the loop belong to which process. Belonging is inherited, as in the simulation."""

    def __init__(self) -> None:
        self._loop: Any = None  # what is used of it is private
        self._factory: Any = None
        self._tasks: dict[Process, set[asyncio.Task[Any]]] = {}
        self._bystanders: set[asyncio.Task[Any]] = set()  # there before: a server or a browser all tests share
        self._any_dead = False
        self.attempts: set[asyncio.Task[Any]] = set()  # in which a task of the user runs at present

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._bystanders = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
        self._factory = loop.get_task_factory()
        loop.set_task_factory(cast(Any, self._make_task))

    def end(self) -> None:
        if not self._loop.is_closed():
            self._loop.set_task_factory(self._factory)
        for process, tasks in self._tasks.items():
            if process.dead:
                _forget([*tasks])
        self.bury()  # unwinding wakes others of the dead
        self._tasks.clear()
        self._bystanders.clear()
        self._any_dead = False
        self.attempts.clear()

    def kill(self, process: Process) -> None:
        process.condition = Condition.DEAD
        self._any_dead = True
        for timer in [timer for timer in self._loop._scheduled if _process_of(timer) is process]:
            timer.cancel()
        self.attempts -= self._tasks.get(process, set())
        self.bury()

    def bury(self) -> None:
        """Callbacks of the dead that somebody living has made ready do not run."""
        if self._any_dead:
            for handle in self._loop._ready:
                process = _process_of(handle)
                if process is not None and process.dead:
                    handle.cancel()

    def outsiders(self) -> list[asyncio.Task[Any]]:
        """Attempts, and tasks that belong to no process and were not there before."""
        members = self._bystanders.union(*self._tasks.values())
        return [task for task in asyncio.all_tasks(self._loop) if task in self.attempts or task not in members]

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        make = _plain_task if self._factory is None else self._factory
        task: asyncio.Task[Any] = make(loop, coroutine, **options)
        context = options.get("context")
        process = current_process() if context is None else context.get(_current)
        if process is not None and not task.done():
            tasks = self._tasks.setdefault(process, set())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        return task


def _plain_task(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(coroutine, loop=loop, **options)


def _forget(killed: list[asyncio.Task[Any]]) -> None:
    """Unwound only now, and unknown to the loop from now on: cancelling it at the loop's end would run what is dead."""
    for task in killed:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # the C task's switch, unknown to typeshed
        asyncio.tasks._unregister_task(task)
        _unwind(task.get_coro())

"""One test session: the user's app on a memory store under virtual time, with a real node that can be
killed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from duetime.app import App
from duetime.engine.node.heartbeat import Heartbeat
from duetime.engine.node.node import Node
from duetime.engine.node.timer import LoopTimer, NodeClock
from duetime.errors import Conflict
from duetime.invokers.resources import ResourceBox
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.job import Job, State
from duetime.testing.kit.faults import FaultPlan
from duetime.testing.kit.handlers import MonitoredHandler
from duetime.testing.kit.next_event import NextEngineEvent
from duetime.testing.kit.recording_store import RecordingStore
from duetime.testing.kit.store_swap import StoreSwap
from duetime.testing.kit.threads import InlineThreads
from duetime.testing.kit.virtual_clock import VirtualClock
from duetime.testing.kit.virtual_loop import VirtualLoop
from duetime.testing.one_step import run_in_one_step
from duetime.testing.processes import Process, current_process

Answer = TypeVar("Answer")
LEASE = "3650d"  # a node that dies here leaves the store immediately, so no lease ever has to expire


def _counting_bytes() -> Callable[[int], bytes]:
    """Ids that count up: jobs submitted while time stands still start in the order of submission."""
    numbers = count(1)
    return lambda size: b"".join(next(numbers).to_bytes(10, "big") for _ in range(size // 10))


@dataclass(frozen=True, slots=True)
class SessionSettings:
    start: Micros
    seed: int = 0
    io_grace: float = 1.0  # real seconds
    resources: Mapping[Any, Any] | None = None  # values to use instead of opening the app's resources
    options: Mapping[str, Any] = field(default_factory=dict)  # of the node


class KitSession:
    def __init__(self, app: App, settings: SessionSettings) -> None:
        chance = Random(settings.seed)
        self.app = app
        self._options = {"name": "test", "lease": LEASE, **settings.options}
        self._resources = settings.resources
        self.faults = FaultPlan(self.kill_node)
        self.store = RecordingStore(self.now, self.faults)
        self._next_event = NextEngineEvent(self.store)
        self.clock = VirtualClock(settings.start, self._next_event, settings.io_grace)
        self._node_clock = NodeClock(self.clock.micros, LoopTimer, chance.random, lambda: 0.0)
        self._swap = StoreSwap(app, self.store, self._node_clock, Ids(_counting_bytes()))
        self._context = Context()
        self._own_loop: VirtualLoop | None = None
        self._process: Process | None = None
        self._node_task: asyncio.Task[None] | None = None
        self._boxes: list[ResourceBox] = []  # of the present node and of killed ones
        self.node: Node | None = None
        self.problems: dict[UUID, BaseException] = {}  # the exception of each job's last attempt

    @property
    def attempts(self) -> set[asyncio.Task[Any]]:
        return self.clock.loop.attempts

    def now(self) -> Micros:
        return self.clock.micros()

    # -- lifecycle -------------------------------------------------------------------------------------------
    def open(self, **overrides: Any) -> None:
        """Put the app under test; `overrides` are attributes of the app that have other values meanwhile."""
        self._swap.begin(**overrides)

    async def start(self) -> None:
        """Put the running loop under virtual time and start a node, unless both are done."""
        loop = asyncio.get_running_loop()
        if self.clock.attached is None:
            self.clock.attach(loop)
            self._context = copy_context()
            self._spawn()
            await self._joined()
        elif self.clock.attached is not loop:
            raise Conflict("this virtual time runs on another event loop: use one loop only, or only `sync`")

    async def stop(self) -> None:
        """Shut the node down in order and return the loop to real time; `start` starts another node."""
        if (
            self.clock.attached is not asyncio.get_running_loop()
            or self._node_task is None
            or self.node is None
        ):
            return
        try:
            self.node.stop()
            await self.clock.until(self._node_task.done)
            self._node_task.result()
            await self._close_resources()
        finally:
            self.abort()

    def abort(self) -> None:
        """Kill the node and return the loop to real time."""
        if self._process is not None and self.clock.attached is not None:
            self.clock.attached.kill(self._process)
        self._process = self._node_task = self.node = None
        self.clock.detach()

    def close(self) -> None:
        if self._own_loop is not None and not self._own_loop.is_closed():
            self._own_loop.run_until_complete(self.stop())
            self._own_loop.close()
        self.abort()
        self._swap.end()

    def run(self, coroutine: Coroutine[Any, Any, Answer], /) -> Answer:
        """For sync code: on a loop of the session's own, or in one step if a loop is running."""
        if asyncio._get_running_loop() is not None or (
            self.clock.attached is not None and self.clock.attached.is_running()
        ):
            return run_in_one_step(coroutine)
        if self._own_loop is None:
            self._own_loop = VirtualLoop()
        return self._own_loop.run_until_complete(coroutine)

    # -- the node --------------------------------------------------------------------------------------------
    def _spawn(self) -> None:
        node = self.app._node(self._new_box(), **self._options)
        node._heartbeats = lambda: Heartbeat(self.store, self._node_clock, node._observers)
        handlers = {
            name: MonitoredHandler(
                name, handler, not inspect.iscoroutinefunction(self.app.tasks[name].function), self
            )
            for name, handler in node._tasks.handlers.items()
        }
        node._tasks = node._tasks._replace(handlers=handlers)
        self._next_event.targets = tuple(sorted(handlers))
        self._next_event.lookahead = node._options.lookahead if "planner" in node._options.roles else None
        self.node, self._process = node, Process("node")
        self._node_task = self._process.context.run(self.clock.loop.create_task, node.run())

    def _new_box(self) -> ResourceBox:
        box = ResourceBox(self._resources)
        box._threads = InlineThreads()
        self._boxes.append(box)
        return box

    async def _close_resources(self) -> None:
        """Includes the resources of killed nodes: the process that holds them is the test's, which lives
        on."""
        while self._boxes:
            box = self._boxes.pop()
            if all(opening.done() for opening in box._open.values()):
                await box.close()

    async def _joined(self) -> None:
        node, node_task = self.node, self._node_task
        assert node is not None
        assert node_task is not None
        await self.clock.until(lambda: node.started.is_set() or node_task.done())
        if node_task.done():
            self.abort()
            node_task.result()

    async def kill_node(self) -> None:
        """Kill the node that runs the caller, as SIGKILL does, and start another. Never returns."""
        process = current_process()
        if (
            process is None
            or process is not self._process
            or self.node is None
            or self.clock.attached is None
        ):
            raise Conflict("only code that a node runs in virtual time can be killed")
        loop = self.clock.attached
        loop.kill(process)
        if self.node.id is not None:
            run_in_one_step(self.store.leave(self.node.id))
        loop.call_soon(self._spawn, context=self._context.copy())
        await loop.create_future()

    # -- jobs ------------------------------------------------------------------------------------------------
    def job(self, job_id: UUID) -> Job | None:
        return run_in_one_step(self.store.get_job(self.app.tenant, job_id))

    def is_final(self, job_id: UUID) -> bool:
        job = self.job(job_id)
        return job is None or job.state.final

    def unfinished(self) -> list[str]:
        """Jobs that run, or wait and can still run. Future fires of schedules do not count."""
        now, paused = self.now(), self.store.paused_queues()
        rows = [row for row in self.store.live() if row.draft.target in self.app.tasks]
        return [
            f"{row.draft.target} {row.draft.id} ({row.state})"
            for row in rows
            if row.state is State.RUNNING
            or (row.draft.queue not in paused and (row.draft.schedule is None or row.draft.due_at <= now))
        ]

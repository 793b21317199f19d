"""The stage a test plays on: the user's app on a memory store, under virtual time, with a real node that can be killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from duetime.engine.alarm import LoopAlarm
from duetime.engine.clock import NodeClock
from duetime.engine.heart import InlineHeart
from duetime.engine.node import Node
from duetime.errors import Conflict
from duetime.invokers.resources import ResourceBox
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.job import Job, State
from duetime.model.limit import Bound
from duetime.testing.kit.accidents import Accidents
from duetime.testing.kit.handlers import Watched
from duetime.testing.kit.horizon import EngineHorizon
from duetime.testing.kit.plain import in_one_step
from duetime.testing.kit.recorder import RecordingStore
from duetime.testing.kit.swap import Swap
from duetime.testing.kit.takeover import Takeover
from duetime.testing.kit.threads import HereAndNow
from duetime.testing.simulation.loop import Process, current_process

if TYPE_CHECKING:
    from duetime.app import App

Answer = TypeVar("Answer")
FOR_EVER = "3650d"  # a lease: whoever dies here is buried at once, and nobody else is ever suspected


def _counted() -> Callable[[int], bytes]:
    """Ids that count: jobs submitted while time stands still start in the order of their submission."""
    numbers = count(1)
    return lambda size: b"".join(next(numbers).to_bytes(10, "big") for _ in range(size // 10))


@dataclass(frozen=True, slots=True)
class Settings:
    start: Micros
    seed: int = 0
    patience: float = 1.0  # real seconds
    resources: Mapping[Any, Any] | None = None  # values in place of what the app's resources would open
    options: Mapping[str, Any] = field(default_factory=dict)  # of the node


class Stage:
    def __init__(self, app: App, settings: Settings) -> None:
        chance = Random(settings.seed)
        self.app = app
        self._options = {"name": "test", "lease": FOR_EVER, **settings.options}
        self._resources = settings.resources
        self.accidents = Accidents(self.die)
        self.store = RecordingStore(self.now, self.accidents)
        self._horizon = EngineHorizon(self.store)
        self.takeover = Takeover(settings.start, self._horizon, settings.patience)
        self.clock = NodeClock(self.takeover.micros, LoopAlarm, chance.random, lambda: 0.0)
        self._swap = Swap(app, self.store, self.clock, Ids(_counted()))
        self._context = Context()
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._process: Process | None = None
        self._life: asyncio.Task[None] | None = None
        self._boxes: list[ResourceBox] = []  # of this node and of those that were killed
        self.node: Node | None = None
        self.problems: dict[UUID, BaseException] = {}  # what the last attempt of a job raised

    def now(self) -> Micros:
        return self.takeover.micros()

    # -- life ---------------------------------------------------------------------------------------------------------
    def open(self, **faces: Any) -> None:
        """Put the app on the stage; `faces` are attributes of the app that are different there."""
        self._swap.begin(**faces)

    async def ready(self) -> None:
        """Take over the running loop and start the node, unless that has been done."""
        loop = asyncio.get_running_loop()
        if self.takeover.loop is None:
            self.takeover.begin(loop)
            self._context = copy_context()
            self._spawn()
            await self._joined()
        elif self.takeover.loop is not loop:
            raise Conflict("this virtual time runs on another event loop: use it on one loop, or its `sync` face, but not both")

    async def rest(self) -> None:
        """End the node in an orderly way and give the loop back; `ready` starts another."""
        if self.takeover.loop is not asyncio.get_running_loop() or self._life is None or self.node is None:
            return
        try:
            self.node.stop()
            await self.takeover.until(self._life.done)
            self._life.result()
            await self._close_resources()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End the node as by SIGKILL and give the loop back."""
        if self._process is not None and self.takeover.loop is not None:
            self.takeover.processes.kill(self._process)
        self._process = self._life = self.node = None
        self.takeover.end()

    def close(self) -> None:
        if self._own_loop is not None and not self._own_loop.is_closed():
            self._own_loop.run_until_complete(self.rest())
            self._own_loop.close()
        self.abandon()
        self._swap.end()

    def run(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        """For plain code: on a loop of the stage's own; within a running loop, in one step."""
        if asyncio._get_running_loop() is not None or (self.takeover.loop is not None and self.takeover.loop.is_running()):
            return in_one_step(coroutine)
        if self._own_loop is None:
            self._own_loop = asyncio.SelectorEventLoop()
        return self._own_loop.run_until_complete(coroutine)

    # -- the node -----------------------------------------------------------------------------------------------------
    def _spawn(self) -> None:
        node = self.app._node(self._new_box(), **self._options)
        node._hearts = lambda: InlineHeart(self.store, self.clock, node._observers)
        handlers = {name: Watched(name, handler, self) for name, handler in node._tasks.handlers.items()}
        node._tasks = node._tasks._replace(handlers=handlers)
        bounds = [(name, handler.limit) for name, handler in handlers.items() if handler.limit is not None]
        self._horizon.targets = tuple(sorted(handlers))
        self._horizon.bounds = tuple(Bound(name, limit.most, limit.parsed_rate) for name, limit in bounds)
        self._horizon.lookahead = node._options.lookahead if "planner" in node._options.roles else None
        assert self.takeover.loop is not None
        self.node, self._process = node, Process("node")
        self._life = self._process.context.run(self.takeover.loop.create_task, node.run())

    def _new_box(self) -> ResourceBox:
        box = ResourceBox(self._resources)
        box._threads = HereAndNow()
        self._boxes.append(box)
        return box

    async def _close_resources(self) -> None:
        """Also those a node that was killed has left open: the process they are open in is the test's, and it lives."""
        while self._boxes:
            box = self._boxes.pop()
            if all(opening.done() for opening in box._open.values()):
                await box.close()

    async def _joined(self) -> None:
        node, life = self.node, self._life
        assert node is not None
        assert life is not None
        await self.takeover.until(lambda: node.started.is_set() or life.done())
        if life.done():
            self.abandon()
            life.result()

    async def die(self) -> None:
        """The node whose code this is dies here, as by SIGKILL; another takes over. Never returns."""
        process, loop = current_process(), self.takeover.loop
        if process is None or process is not self._process or self.node is None or loop is None:
            raise Conflict("only what a node runs in virtual time can be killed")
        self.takeover.processes.kill(process)
        if self.node.id is not None:
            in_one_step(self.store.leave(self.node.id))
        loop.call_soon(self._spawn, context=self._context.copy())
        await loop.create_future()

    # -- jobs ---------------------------------------------------------------------------------------------------------
    def job(self, job_id: UUID) -> Job | None:
        return in_one_step(self.store.get_job(self.app.tenant, job_id))

    def is_final(self, job_id: UUID) -> bool:
        job = self.job(job_id)
        return job is None or job.state.final

    def unfinished(self) -> list[str]:
        """Jobs that run or wait and can still be run; fires of schedules that lie ahead do not count."""
        now, paused = self.now(), self.store.paused_queues()
        rows = [row for row in self.store.live() if row.draft.target in self.app.tasks]
        return [
            f"{row.draft.target} {row.draft.id} ({row.state})"
            for row in rows
            if row.state is State.RUNNING or (row.draft.queue not in paused and (row.draft.schedule is None or row.draft.due_at <= now))
        ]

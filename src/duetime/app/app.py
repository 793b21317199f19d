"""App: the composition root. A client that can also be a node: planner and worker of its own tasks."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from typing import Any, Protocol

from duetime import stores
from duetime.app.operations import Operations
from duetime.app.tenants import Tenants
from duetime.engine.calm import share_the_interpreter, spare_the_collector
from duetime.engine.checks import refuse_unknown
from duetime.engine.clock import NodeClock
from duetime.engine.heart import ThreadedHeart
from duetime.engine.node import Node
from duetime.engine.options import NodeOptions
from duetime.engine.signals import Signals
from duetime.engine.tasks import Tasks
from duetime.errors import Conflict, InvalidInput
from duetime.invoker import Handler
from duetime.invokers.resources import ResourceBox
from duetime.invokers.task import TaskHandler
from duetime.invokers.threads import Threads
from duetime.model import duration
from duetime.model.events import Event
from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_TENANT
from duetime.observer import Observer, Observers
from duetime.observers.log import log_event
from duetime.observers.watch import Watch
from duetime.store import Store
from duetime.sync import SyncApp
from duetime.task import Task
from duetime.version import VERSION


class Target(Handler, Protocol):
    """A handler that holds something open."""

    async def close(self) -> None: ...


LAST_WORDS = 2.0  # seconds: what was counted is written down before the end, unless the store takes too long
TargetMaker = Callable[[Callable[[], Micros]], Target]  # given the store's clock
NODE_OPTIONS = tuple(option.name for option in fields(NodeOptions) if option.name != "version")


class App(Operations):
    """One program's view of Duetime. Opening it makes a client; `running()` and `run()` make a node that plans and works, too."""

    def __init__(
        self, store: str | Store = stores.DEFAULT_URL, *, tenant: str = DEFAULT_TENANT, observers: Sequence[Observer] = ()
    ) -> None:
        self.sync = SyncApp(self._twin)
        self._given = Observers(observers)
        super().__init__(store, tenant, [log_event, self._tell_watch, self._given])
        self._threads: Threads | None = None
        self._node_here: Node | None = None
        self._targets: dict[str, TargetMaker] = {}

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[Node]:
        """A planner and worker inside this process, until the block ends. Options: see NodeOptions."""
        resources = ResourceBox()
        targets = {name: make(self._clock.now) for name, make in self._targets.items()}
        self.watch()
        node = self._node(resources, targets, **options)
        share_the_interpreter()
        await self.open()
        self._node_here = node
        life = asyncio.create_task(node.run(), name="duetime-node")
        try:
            await _first(life, node.started)
            yield node
        finally:
            node.stop()
            try:
                await life
            finally:
                self._node_here = None
                for target in targets.values():
                    await target.close()
                await resources.close()
                await self.close()

    def use_store(self, store: str | Store) -> None:
        super().use_store(store)
        self.sync.close()  # it opens itself again, on this store
        self._tenants = Tenants(self)
        self._watch: Watch | None = None

    def for_tenant(self, name: str) -> Operations:
        """This app as one tenant sees it: the same store, connections and tasks; open while this app is. Cheap, and made once."""
        return self._tenants(name)

    def watch(self) -> Watch:
        """Have this process count what happens in it, keep it by the minute and tell those who listen. Every node does; a client that
        only submits need not."""
        if self._watch is None:
            self._watch = Watch(self._store, self._clock, self._ids.new(0).hex[-12:])
            self._audience.on_renewed = self._watch.journal.listen_until
            if self._opened:
                self._watch.open()
        return self._watch

    def observe(self, observer: Observer) -> None:
        """Have this function told of everything that happens here, too."""
        self._given.add(observer)

    @property
    def clock(self) -> NodeClock:
        """The store's time as this process knows it."""
        return self._clock

    @property
    def node(self) -> Node | None:
        """That of this app which is running, if one is."""
        return self._node_here

    def use_target(self, name: str, make: TargetMaker) -> None:
        """Have nodes of this app run jobs of another target than a task, such as "@http". `make` is called when a node starts."""
        self._targets[name] = make

    async def run_async(self, **options: Any) -> None:
        """Plan and work until cancelled. For a loop of your own; signals are yours to handle."""
        async with self.running(**options) as node:
            await node.ended.wait()

    def run(self, **options: Any) -> None:
        """Plan and work until SIGINT or SIGTERM; a second signal ends it without waiting for running jobs."""
        _refuse_a_running_loop()
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._run_until_signal(options))

    async def _run_until_signal(self, options: dict[str, Any]) -> None:
        with Signals() as signals:
            async with self.running(**options) as node:
                signals.on_second(node.interrupt)
                spare_the_collector()
                await signals.wait(node.ended)

    async def _connect(self) -> None:
        await super()._connect()
        if self._watch is not None:
            self._watch.open()

    async def _disconnect(self) -> None:
        if self._watch is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS):
                    await self._watch.close()
        await super()._disconnect()
        if self._threads is not None:
            self._threads.close()
            self._threads = None

    # -- inside -------------------------------------------------------------------------------------------------------
    def _own_watch(self) -> Watch | None:
        return self._watch

    def _tell_watch(self, event: Event) -> None:
        if self._watch is not None:
            self._watch(event)

    def _node(self, resources: ResourceBox, targets: Mapping[str, Target] | None = None, **options: Any) -> Node:
        settings = NodeOptions(**{"name": f"{socket.gethostname()}-{os.getpid()}", "version": VERSION, **_parsed(options)})
        handlers: dict[str, Handler] = {name: self._handler(task, resources) for name, task in self.tasks.items()}
        handlers.update(targets or {})
        retentions = {name: task.options.retention for name, task in self.tasks.items() if task.options.retention is not None}
        tasks = Tasks(handlers, retentions, {name: task.defaults for name, task in self.tasks.items()})

        def heart() -> ThreadedHeart:
            return ThreadedHeart(self._store, self._clock, self._observers)

        return Node(self._store, self._clock, tasks, settings, self._observers, heart, self._waiting.settled)

    def _handler(self, task: Task[..., Any], resources: ResourceBox) -> TaskHandler:
        own, inner = self.hooks.chain, () if task.group is self else task.group.hooks.chain
        return TaskHandler(
            task.function,
            task.signature,
            task.policies,
            self._thread_pool,
            limit=task.options.limit,
            isolate=task.options.isolate,
            version=task.options.version,
            upgrade=task.options.upgrade,
            middleware=(*own, *inner),
            resources=resources,
        )

    def _thread_pool(self) -> Threads:
        if self._threads is None:
            self._threads = Threads()
        return self._threads

    def _twin(self) -> App:
        """Another app on the same store and tasks, for another event loop."""
        twin = App(self._store.twin(), tenant=self._tenant, observers=[self._given])
        twin.tasks = self.tasks
        return twin


async def _first(life: asyncio.Task[None], started: asyncio.Event) -> None:
    """Until the node has joined; what prevents it is raised here."""
    joined = asyncio.ensure_future(started.wait())
    await asyncio.wait([life, joined], return_when=asyncio.FIRST_COMPLETED)
    joined.cancel()
    if life.done():
        life.result()


def _parsed(options: dict[str, Any]) -> dict[str, Any]:
    refuse_unknown(options, NODE_OPTIONS)
    return {name: _node_option(name, value) for name, value in options.items()}


def _node_option(name: str, value: Any) -> Any:
    match name:
        case "lease" | "lookahead" | "grace" | "retention":
            return duration.parse(value, name)
        case "roles" | "queues":
            if isinstance(value, str) or not all(isinstance(part, str) for part in value):
                raise InvalidInput(name, f"{value!r} is not a list of names: write {name}=[...]")
            return tuple(value)
        case "concurrency" if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput(name, f"{value!r} must be a whole number")
        case "max_load" if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise InvalidInput(name, f"{value!r} must be a number")
        case _:
            return value


def _refuse_a_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise Conflict("app.run() makes an event loop of its own, and one is running here: `await app.run_async()` in its place")


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop

"""App: the public entry point. An app can submit and read, and it can be a node that plans and works."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Protocol

from duetime import queues
from duetime.app.adoption import refuse_unadopted
from duetime.app.broker import BrokerReader
from duetime.app.core import AsyncApp
from duetime.app.event_loop import name_stubborn, run_in_new_loop
from duetime.app.services import Services
from duetime.app.store_choice import chosen_store, warn_of_another
from duetime.app.sync import SyncApp
from duetime.app.tracing import open_tracer
from duetime.archives import archive_for
from duetime.archives.formats import JSONL
from duetime.config import hide_password
from duetime.engine.alert.notices import ALERT
from duetime.engine.node.heartbeat import Heartbeat
from duetime.engine.node.loop import LoopThread, Signals, share_the_interpreter, spare_the_collector
from duetime.engine.node.node import Node
from duetime.engine.node.options import DEFAULT_ROLES, ROLES, HandlerRegistry, NodeOptions
from duetime.engine.submit.validate import check_name, refuse_unknown
from duetime.errors import Conflict, InvalidInput
from duetime.invoker import Handler
from duetime.invokers.alert.handler import AlertHandler
from duetime.invokers.alert.ping import pinger
from duetime.invokers.resources import ResourceBox
from duetime.invokers.task import TaskHandler
from duetime.invokers.threads import Threads
from duetime.lease import LeaseTable
from duetime.leases import leases_for
from duetime.model import duration
from duetime.model.instant import SECOND, Micros
from duetime.model.job import DEFAULT_TENANT
from duetime.model.keyring import KeyRing
from duetime.model.limit import DEFAULT_QUOTAS, Quotas
from duetime.model.permissions import Permissions
from duetime.model.target import HTTP, LISTED
from duetime.model.url import ANY_ADDRESS
from duetime.model.views import BrokerView
from duetime.observer import Observer, Observers
from duetime.queue import TicketQueue
from duetime.store import Store
from duetime.task import AnyTask
from duetime.tracing import Tracer
from duetime.version import VERSION


class Target(Handler, Protocol):
    """A handler that holds something open."""

    async def close(self) -> None: ...


MAX_VIEWS = 10_000  # of tenants
TargetMaker = Callable[[Callable[[], Micros]], Target]  # given the store's clock
NODE_OPTIONS = tuple(
    option.name
    for option in fields(NodeOptions)
    if option.name not in ("version", "broker", "permissions", "ping")
)

# Of durations, as the settings have them. NodeOptions itself refuses a short lease and lookahead.
SHORTEST: Mapping[str, Micros] = {
    "lease": 0,
    "lookahead": 0,
    "grace": 0,
    "output_retention": 0,
    "watchdog_interval": SECOND,
    "alert_interval": SECOND,
    "retention": 60 * SECOND,
    "keep_failed": 60 * SECOND,
    "keep_queues": 60 * SECOND,
}


class App(AsyncApp):
    """One program's access to Duetime. Opening it makes a client; `running()` and `run()` make a node that
    also plans and works."""

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        tenant: str = DEFAULT_TENANT,
        observers: Sequence[Observer] = (),
        quotas: Quotas = DEFAULT_QUOTAS,
        queue: str | Callable[[], TicketQueue] | None = None,
        read_store: str | Store | None = None,
        leases: str | None = None,
        secret_keys: Sequence[str] = (),
        traces: str | None = None,
        trace_sampling: float = 1.0,
        strict_tasks: bool = False,
    ) -> None:
        """`store`: its URL, or a store. Without it, the one that the settings name: DUETIME_STORE, .env,
        duetime.toml, or else a file in this folder. `queue`: the broker through which due jobs reach the
        workers, as a URL or a function that makes a connection. Without it, workers ask the store.
        `read_store`: a read replica of the store, for lists and statistics. `leases`: the URL of etcd, if it
        and not the store should hold the leases of planners. `secret_keys` (ID:BASE64, the current one first)
        encrypt the secrets of alert channels. `traces`: the URL of an OpenTelemetry collector, and
        `trace_sampling` the share of traces that it gets. `strict_tasks`: refuse jobs and schedules of tasks
        that neither this program nor any node so far has; otherwise there is a warning."""
        self._strict_tasks = strict_tasks
        self._ring = KeyRing.parse(secret_keys)
        self._tracer: Tracer | None = None if traces is None else open_tracer(traces, trace_sampling)
        self.use_queue(queue)
        self._leases_url = leases
        self.sync = SyncApp(self._twin)
        super().__init__(
            chosen_store() if store is None else store, tenant, Observers(observers), quotas, read_store
        )
        self._url_in_code = store if isinstance(store, str) else None
        self.threads: int | None = None  # for nodes without this option; a framework sets it
        self._threads: Threads | None = None
        self._broker_reader: BrokerReader | None = None
        self._node_here: Node | None = None
        self.use_secret_keys(self._ring)
        self._targets: dict[str, TargetMaker] = {}
        self.permissions: Permissions | None = None  # of its node, for others to know

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[Node]:
        """A planner and worker inside this process, until the block ends. Options: see NodeOptions."""
        self._refuse_other_loop()
        resources = ResourceBox()
        makers = dict(self._targets)
        if HTTP in makers and self.permissions is None:  # a program's own node: its handler decides
            makers[LISTED] = makers[HTTP]
        targets = {name: make(self._clock.now) for name, make in makers.items()}
        if ALERT not in targets:
            targets[ALERT] = AlertHandler(
                self.store, self._clock.now, self._ring, ANY_ADDRESS, allow_apprise=True
            )
        self.watch()
        node = self._node(resources, targets, **options)
        share_the_interpreter()
        await self.open()
        self._node_here = node
        life = asyncio.create_task(node.run(), name="duetime-node")
        try:
            await _joined(life, node.started)
            yield node
        finally:
            node.stop()
            try:
                await life
            finally:
                name_stubborn(node.stubborn, "node")
                self._node_here = None
                for target in targets.values():
                    await target.close()
                await resources.close()
                await self.close()

    def use_store(self, store: str | Store) -> None:
        """Keep the tasks and work on another store; only before the app is opened."""
        super().use_store(store)
        self._url_in_code = None
        self.sync.close()  # it opens itself again, on this store
        self.context.shared.leases.table = self._lease_table()
        self.context.shared.ring = self._ring
        self.context.shared.tracing.tracer = self._tracer
        self.context.shared.published_tasks.strict = self._strict_tasks
        self._views: dict[str, Services] = {self._tenant: self}

    @property
    def url_in_code(self) -> str | None:
        """The store's URL, with the password, if the program names it and `use_store` has not replaced it."""
        return self._url_in_code

    def use_queue(self, queue: str | Callable[[], TicketQueue] | None) -> None:
        """Have nodes of this app that start later use this broker; None: no broker."""
        self._open_queue: Callable[[], TicketQueue] | None
        if isinstance(queue, str):
            queues.queue_for(queue)  # a wrong address is an error now
            self._open_queue, self._broker = partial(queues.queue_for, queue), hide_password(queue)
        else:
            self._open_queue, self._broker = queue, "a queue of the program"

    def use_leases(self, url: str | None) -> None:
        """Hold leases there; None: in the store. Only before the app is opened."""
        if self._opened:
            raise Conflict("the app is already open: choose where its leases are held before that")
        self._leases_url = url
        self.context.shared.leases.table = self._lease_table()

    def use_secret_keys(self, ring: KeyRing) -> None:
        """Encrypt and decrypt the secrets of alert channels with these keys."""
        self._ring = self.context.shared.ring = ring

    def use_strict_tasks(self, strict: bool) -> None:
        """Refuse jobs and schedules of tasks that neither this program nor any node so far has."""
        self._strict_tasks = self.context.shared.published_tasks.strict = strict

    def use_traces(self, tracer: Tracer | None) -> None:
        """Have this process make traces; only before the app is opened."""
        if self._opened:
            raise Conflict("the app is already open: choose where its traces go before that")
        self._tracer = self.context.shared.tracing.tracer = tracer

    @property
    def tracer(self) -> Tracer | None:
        return self._tracer

    @property
    def broker(self) -> str | None:
        """The address of the broker, without its password."""
        return None if self._open_queue is None else self._broker

    async def read_broker(self) -> BrokerView:
        """Whether the broker answers, and how many messages it holds. It never waits long for the broker."""
        self.context.require_open()
        if self._open_queue is None:
            return BrokerView()
        if self._broker_reader is None:
            self._broker_reader = BrokerReader(
                self._open_queue(), self._broker, self.store, self._clock, self._observers
            )
        return await self._broker_reader.read()

    def for_tenant(self, name: str) -> Services:
        """This app as one tenant sees it: the same store, connections and tasks; open while this app is."""
        view = self._views.get(name)
        if view is None:
            if len(self._views) >= MAX_VIEWS:
                self._views = {self._tenant: self}
            view = self._views[name] = Services(self.context.with_tenant(name))
        return view

    @property
    def node(self) -> Node | None:
        """The running node of this app, if there is one."""
        return self._node_here

    def use_target(self, name: str, make: TargetMaker) -> None:
        """Have nodes of this app run jobs of a target other than a task, such as "@http". `make` is called
        when a node starts."""
        self._targets[name] = make

    async def run_async(self, **options: Any) -> None:
        """Plan and work until cancelled, in your own event loop. You handle signals."""
        async with self.running(**options) as node:
            await node.ended.wait()

    def run(self, **options: Any) -> None:
        """Plan and work until SIGINT or SIGTERM; a second signal ends it without waiting for running jobs."""
        _refuse_a_running_loop()
        run_in_new_loop(self._run_until_signal(options))

    async def _run_until_signal(self, options: dict[str, Any]) -> None:
        with Signals() as signals:
            async with self.running(**options) as node:
                signals.on_second(node.interrupt)
                spare_the_collector()
                await signals.wait(node.ended)

    # -- inside
    async def _connect(self) -> None:
        warn_of_another(self._url_in_code)
        await super()._connect()

    async def _disconnect(self) -> None:
        if self._broker_reader is not None:
            await self._broker_reader.close()
            self._broker_reader = None
        await super()._disconnect()
        if self._threads is not None:
            self._threads.close()
            self._threads = None

    def _node(
        self, resources: ResourceBox, targets: Mapping[str, Target] | None = None, **options: Any
    ) -> Node:
        defaults = {
            "name": f"{socket.gethostname()}-{os.getpid()}",
            "version": VERSION,
            "roles": DEFAULT_ROLES if self._open_queue is None else ROLES,
            "broker": self.broker,
            "permissions": self.permissions,
            "threads": self.threads,
        }
        settings = NodeOptions(**{**defaults, **_parsed(options)})
        handlers: dict[str, Handler] = {
            name: self._handler(task, resources) for name, task in self.tasks.items()
        }
        handlers.update(targets or {})
        if self._tracer is not None:
            handlers = self._tracer.handlers(handlers)
        retentions = {
            name: task.options.retention
            for name, task in self.tasks.items()
            if task.options.retention is not None
        }
        tasks = HandlerRegistry(
            handlers,
            retentions,
            {name: task.defaults for name, task in self.tasks.items()},
            frozenset(
                name
                for name, task in self.tasks.items()
                if task.options.isolate or not iscoroutinefunction(task.function)
            ),
        )

        def heartbeat() -> Heartbeat:
            return Heartbeat(self.store, self._clock, self._observers, LoopThread("duetime-heartbeat"))

        return Node(
            self.store,
            self._clock,
            tasks,
            settings,
            self._observers,
            heartbeat,
            self.context.shared.waiter.settled,
            self._open_queue,
            self.context.shared.leases.table,
            partial(refuse_unadopted, self.store, joins=True),
        )

    def _lease_table(self) -> LeaseTable | None:
        return None if self._leases_url is None else leases_for(self._leases_url, self._clock)

    def _handler(self, task: AnyTask, resources: ResourceBox) -> TaskHandler:
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
            output=task.options.output,
            store_result=task.options.store_result,
        )

    def _thread_pool(self) -> Threads:
        if self._threads is None:
            self._threads = Threads()
        return self._threads

    def _twin(self) -> AsyncApp:
        """A client on the same store and tasks, for another event loop."""
        warn_of_another(self._url_in_code)
        twin = AsyncApp(self.store.clone(), self._tenant, self._given, self._quotas, self._read_store)
        twin.tasks = twin.context.shared.tasks = self.tasks
        twin.context.shared.leases.table = self._lease_table()
        twin.context.shared.ring = self._ring
        twin.context.shared.tracing.tracer = self._tracer
        return twin


async def _joined(life: asyncio.Task[None], started: asyncio.Event) -> None:
    """Until the node has joined; raises the error that prevents it."""
    joined = asyncio.ensure_future(started.wait())
    await asyncio.wait([life, joined], return_when=asyncio.FIRST_COMPLETED)
    joined.cancel()
    if life.done():
        life.result()


def _parsed(options: dict[str, Any]) -> dict[str, Any]:
    refuse_unknown(options, (*NODE_OPTIONS, "watchdog_url", "archive_format"))
    url = options.pop("watchdog_url", None)
    form = options.pop("archive_format", JSONL)
    if options.get("archive") is not None:
        options["archive"] = archive_for(options["archive"], form)
    made = {name: _node_option(name, value) for name, value in options.items()}
    return made if url is None else {**made, "ping": pinger(url)}


def _node_option(name: str, value: Any) -> Any:
    match name:
        case "keep_failed" | "threads" if value is None:
            return None
        case "keep_queues":
            if not isinstance(value, Mapping):
                raise InvalidInput(name, f'{value!r} is not a mapping: write {name}={{"billing": "90d"}}')
            return {check_name(queue, name): _lapse(kept, name) for queue, kept in value.items()}
        case "name":
            return check_name(value, name)
        case "queues":
            return tuple(check_name(queue, name) for queue in _names(value, name))
        case "roles":
            return _names(value, name)
        case _ if name in SHORTEST:
            return _lapse(value, name)
        case "concurrency" | "threads" | "queue_depth" if isinstance(value, bool) or not isinstance(
            value, int
        ):
            raise InvalidInput(name, f"{value!r} must be a whole number")
        case "max_load" if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise InvalidInput(name, f"{value!r} must be a number")
        case _:
            return value


def _lapse(value: Any, name: str) -> Micros:
    lapse, shortest = duration.parse(value, name), SHORTEST[name]
    if lapse < shortest:
        raise InvalidInput(name, f"{value!s} is too short: use {duration.show(shortest)} or more")
    return lapse


def _names(value: Any, name: str) -> tuple[str, ...]:
    parts = None if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if parts is None or not all(isinstance(part, str) for part in parts):
        raise InvalidInput(name, f"{value!r} is not a list of names: write {name}=[...]")
    return tuple(dict.fromkeys(parts))


def _refuse_a_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise Conflict(
        "app.run() starts its own event loop, but one is already running: use `await app.run_async()` instead"
    )

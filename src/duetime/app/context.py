"""What the services of an app work with: the parts that all tenants share, and the tenant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, cast

from duetime.app.event_feed import EventFeed
from duetime.app.fair_lists import FairLists, Turns
from duetime.app.leases import LeaseReader
from duetime.app.read_store import ReadStore
from duetime.app.remote_work import RemoteWork
from duetime.app.reports import ReportWriter
from duetime.app.stats import StatsReader
from duetime.app.wait import JobWaiter
from duetime.clock import Clock
from duetime.engine.node.registry import PublishedTasks
from duetime.engine.submit.build import NO_DEFAULTS, Defaults
from duetime.engine.submit.commands import Commands, Repeat
from duetime.engine.submit.schedules import DefaultsOf
from duetime.engine.submit.submission import Submission
from duetime.engine.submit.validate import check_name
from duetime.errors import InvalidInput, NotOpen, TaskNotFound
from duetime.invoker import TaskConnection
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.keyring import KeyRing
from duetime.model.views import ReadStoreView
from duetime.observer import Observers
from duetime.observers.metrics import ProcessTelemetry
from duetime.observers.observed_store import ObservedStore
from duetime.store import RunOnOwner, Store
from duetime.task import Task
from duetime.tracing import TracerSlot


class Shared:
    """One app on one store: its tasks, its connection and its caches."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        observers: Observers,
        tasks: Mapping[str, Task[..., Any]],
        is_open: Callable[[], bool],
        read_store: ReadStore | None = None,
    ) -> None:
        self.store = store
        self.read_store = read_store
        turns = Turns()
        self.fair_store = cast(Store, FairLists(store, turns))
        self.reads = cast(Store, FairLists(cast(Store, read_store or store), turns))
        self.clock = clock
        self.observers = observers
        self.tasks = tasks
        self.is_open = is_open
        self.commands = Commands(cast(Store, ObservedStore(store, observers)), clock, ids)
        self.waiter = JobWaiter(store, clock)
        self.event_feed = EventFeed(store, clock)
        self.leases = LeaseReader(store, clock)
        self.stats = StatsReader(self.reads, clock, self.leases.read_if_available)
        self.published_tasks = PublishedTasks(store, clock)
        self.reports = ReportWriter(store, clock, observers)
        self.remote_work = RemoteWork(store, clock, self.reports, observers)
        self.ring = KeyRing()  # encrypts the secrets of alert channels
        self.tracing = TracerSlot()
        self.telemetry: ProcessTelemetry | None = None  # counts what this process does, if it is asked to

    async def open(self) -> None:
        await self.store.open()
        if self.read_store is not None:
            await self.read_store.open()

    async def read_state(self) -> ReadStoreView | None:
        """Of the read replica, if there is one."""
        return None if self.read_store is None else await self.read_store.state()

    async def close(self) -> None:
        self.waiter.close()
        self.remote_work.close()
        await self.event_feed.close()
        self.stats.close()
        await self.leases.close()
        if self.read_store is not None:
            await self.read_store.close()
        await self.store.close()


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A blocking connection that belongs to another thread, on which `run` calls a function."""

    connection: Any
    run: RunOnOwner


async def _run_here(call: Callable[[], Any]) -> Any:
    return call()


@dataclass(frozen=True, slots=True)
class AppContext:
    """The view of one tenant. Store and commands can only be used while the app is open."""

    shared: Shared
    tenant: str
    ids: Ids
    all_commands: Commands
    _submission: Submission = field(init=False)

    def __post_init__(self) -> None:
        published = self.shared.published_tasks.for_new_work
        made = Submission(
            self.all_commands,
            self.ids,
            self.tenant,
            self._resolve_defaults,
            published,
            self.shared.tracing,
        )
        object.__setattr__(self, "_submission", made)

    def with_tenant(self, name: str) -> AppContext:
        return replace(self, tenant=check_name(name, "tenant"))

    async def within(self, connection: Any) -> AppContext:
        """What it writes belongs to the transaction of the caller that is open on this connection."""
        run: RunOnOwner = _run_here
        if isinstance(connection, Borrowed):
            connection, run = connection.connection, connection.run
        own = await connection if isinstance(connection, TaskConnection) else connection
        store = self.store
        transaction = await run(lambda: store.within(own))
        if run is not _run_here and not transaction.blocking:
            raise InvalidInput(
                "connection", "is async: use the awaitable call of the app, or give a blocking connection"
            )
        shared = copy(self.shared)
        shared.store = shared.fair_store = shared.reads = cast(Store, transaction.verbs(run))
        shared.commands = self.all_commands.on(shared.store)
        return replace(self, shared=shared, all_commands=shared.commands)

    def repeating(self, repeat: Repeat) -> AppContext:
        """For one request that may be repeated."""
        return replace(self, ids=repeat.ids, all_commands=self.all_commands.repeating(repeat))

    @property
    def store(self) -> Store:
        self.require_open()
        return self.shared.fair_store

    @property
    def reads(self) -> Store:
        """For lists and statistics: a read replica if there is one, which may be behind."""
        self.require_open()
        return self.shared.reads

    @property
    def commands(self) -> Commands:
        self.require_open()
        return self.all_commands

    @property
    def submission(self) -> Submission:
        self.require_open()
        return self._submission

    @property
    def clock(self) -> Clock:
        return self.shared.clock

    async def now(self) -> Micros:
        """The store's time."""
        return await self.commands.now()

    async def moment(self) -> Micros:
        """The instant of new jobs and schedules: now, or the time of the first request if this one repeats
        it."""
        return await self.commands.moment()

    def require_open(self) -> None:
        if not self.shared.is_open():
            raise NotOpen(
                "the app is not open: use `async with app.running()`, or `async with app` if it runs no jobs"
            )

    # -- tasks
    def resolve(self, task: Task[..., Any] | str) -> tuple[str, Task[..., Any] | None]:
        """The name of a task, and the task itself if this process knows it."""
        if isinstance(task, Task):
            return task.name, task
        if not isinstance(task, str):
            raise TaskNotFound(
                f'{task!r} is not a task: decorate the function with @app.task("name") or give a task\'s name'
            )
        known = self.shared.tasks.get(task)
        return (task, known) if known is not None else (check_name(task, "task"), None)

    def _resolve_defaults(self, task: Task[..., Any] | str) -> tuple[str, Defaults | None]:
        name, known = self.resolve(task)
        return name, None if known is None else known.defaults

    async def defaults_of(self, task: str) -> Defaults:
        """The defaults of a task; of one that this process does not know, those that its workers have
        published."""
        known = self.shared.tasks.get(task)
        return (await self.shared.published_tasks.read(task)).defaults if known is None else known.defaults

    async def defaults_for(self, target: str, spec: bytes | None) -> Defaults:
        """The same for any target; only tasks have defaults."""
        return NO_DEFAULTS if spec is not None else await self.defaults_of(self.resolve(target)[0])

    async def defaults_for_new_work(self, target: str, spec: bytes | None) -> Defaults:
        """The same for the target of a new schedule: a task that no node has had is told, or refused."""
        if spec is not None:
            return NO_DEFAULTS
        name, known = self.resolve(target)
        return await self.shared.published_tasks.for_new_work(name) if known is None else known.defaults

    def defaults_for_edit(self, changes: Mapping[str, Any]) -> DefaultsOf:
        return self.defaults_for_new_work if "target" in changes else self.defaults_for

    async def task_warning(self, target: str, spec: bytes | None) -> str | None:
        """That no node has had this task so far."""
        if spec is not None or target in self.shared.tasks:
            return None
        return (await self.shared.published_tasks.read(target)).warning

"""An app without nodes: its tasks, its store, and the services on it. Opened as often as it is closed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self

from duetime import stores
from duetime.app.adoption import refuse_unadopted
from duetime.app.context import AppContext, Shared
from duetime.app.discovery import groups_in, import_all
from duetime.app.read_store import ReadStore
from duetime.app.services import Services
from duetime.app.store_copy import refuse_unfinished
from duetime.engine.node.timer import NodeClock
from duetime.engine.submit.validate import check_name
from duetime.errors import ConfigError, Conflict
from duetime.model.events import Event
from duetime.model.ids import Ids
from duetime.model.limit import Quotas
from duetime.observer import Observer, Observers
from duetime.observers.log import EventLogger
from duetime.observers.metrics import ProcessTelemetry
from duetime.store import Migration, Store
from duetime.task import AnyTask, Tasks

FLUSH_TIMEOUT = 2.0  # seconds for writing the last counts and events before the store is closed


class LoopLock:
    """A lock for an object that is used on one event loop after another: each loop needs its own."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()

    @property
    def here(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock


class AsyncApp(Tasks, Services):
    """Submits, reads and changes, and runs nothing."""

    _is_app = True

    def __init__(
        self,
        store: str | Store,
        tenant: str,
        observers: Observers,
        quotas: Quotas,
        read_store: str | Store | None = None,
    ) -> None:
        Tasks.__init__(self)
        self._given = observers
        self._observers = Observers([EventLogger(), self._count, observers])
        self._tenant = check_name(tenant, "tenant")
        self._clock = NodeClock()
        self._ids = Ids()
        self._opened = 0
        self._loop: asyncio.AbstractEventLoop | None = None  # in which the app is open
        self._lock = LoopLock()
        self._quotas = quotas
        self._read_store = read_store
        self._store_url: str | None = None
        self.use_store(store)

    def use_store(self, store: str | Store) -> None:
        """Keep the tasks and work on another store; only before the app is opened."""
        if self._opened:
            raise Conflict("the app is already open: choose its store before that")
        made = _store_of(store, "store")
        if made is not store:
            self._store_url = str(store)
        shared = Shared(
            made,
            self._clock,
            self._ids,
            self._observers,
            self.tasks,
            self._is_open_here,
            None if self._read_store is None else self._replica_of(made, self._read_store),
        )
        shared.commands.quota.quotas = self._quotas
        Services.__init__(self, AppContext(shared, self._tenant, self._ids, shared.commands))

    def use_read_store(self, read_store: str | Store | None) -> None:
        """Read lists and statistics from this replica of the store; only before the app is opened."""
        self._read_store = read_store
        self.use_store(self.store)

    @property
    def store_url(self) -> str | None:
        """With the password, if it has one. None if a store was given, not a URL."""
        return self._store_url

    @property
    def quotas(self) -> Quotas:
        """How much each tenant may use."""
        return self._quotas

    @quotas.setter
    def quotas(self, quotas: Quotas) -> None:
        self._quotas = self.context.shared.commands.quota.quotas = quotas

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        return self._opened > 0

    @property
    def clock(self) -> NodeClock:
        """The store's time as this process knows it."""
        return self._clock

    async def open(self) -> None:
        """Connect as a client: submits, reads, runs nothing. As `async with app`, which also closes it."""
        async with self._lock.here:
            if not self._is_open_here():
                await self._connect()
                self._loop = asyncio.get_running_loop()
            self._opened += 1

    async def close(self) -> None:
        """Undo one `open`; the last one disconnects."""
        async with self._lock.here:
            self._refuse_other_loop()
            self._opened = max(0, self._opened - 1)
            if self._opened == 0:
                await self._disconnect()
                self._loop = None

    async def migrate(self) -> Migration:
        """Create or upgrade the schema. Many processes may call it at the same time."""
        return await self.store.migrate()

    def discover(self, package: str) -> None:
        """Import this module and, if it is a package, all its modules, so that their tasks are registered.
        Groups of tasks in them are included."""
        for group in groups_in(import_all(package)):
            self.include(group)

    def observe(self, observer: Observer) -> None:
        """Call this function for every event in this process, too."""
        self._given.add(observer)

    def watch(self) -> ProcessTelemetry:
        """Have this process count its work, keep the counts by the minute and write events for subscribers.
        Every node does; a client that only submits need not."""
        shared = self.context.shared
        if shared.telemetry is None:
            shared.telemetry = ProcessTelemetry(shared.store, self._clock, self._ids.new(0).hex[-12:])
            shared.event_feed.on_renewed = shared.telemetry.event_log.listen_until
            if self._opened:
                shared.telemetry.open()
        return shared.telemetry

    # -- inside
    def _is_open_here(self) -> bool:
        self._refuse_other_loop()
        return self._opened > 0

    def _refuse_other_loop(self) -> None:
        """Connections belong to the event loop that made them: in another one they fail, or wait without
        end."""
        if self._loop is not None and asyncio._get_running_loop() not in (None, self._loop):
            raise Conflict(
                "the app was opened in another event loop: open, use and close it in one, such as one "
                "asyncio.run(); threads and programs without an event loop use app.sync"
            )

    async def _connect(self) -> None:
        shared = self.context.shared
        try:
            await shared.open()
            await refuse_unfinished(shared.store)
            await refuse_unadopted(shared.store)
            await self._clock.follow(shared.store.time)
        except BaseException:
            await shared.close()
            raise
        if shared.telemetry is not None:
            shared.telemetry.open()

    async def _disconnect(self) -> None:
        shared = self.context.shared
        if shared.telemetry is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_TIMEOUT):
                    await shared.telemetry.close()
        if shared.tracing.tracer is not None:
            await shared.tracing.tracer.flush()
        await shared.close()

    def _replica_of(self, store: Store, read_store: str | Store) -> ReadStore:
        replica = _store_of(read_store, "read_store")
        if not (store.capabilities.replicas and replica.capabilities.replicas):
            raise ConfigError("read_store: only stores in PostgreSQL have read replicas: leave it out")
        # As a clone it keeps no connection for writing.
        return ReadStore(store, replica.clone(), self._clock, self._observers)

    def _keep(self, task: AnyTask) -> None:
        super()._keep(task)
        task.belong_to(self)

    def _count(self, event: Event) -> None:
        telemetry = self.context.shared.telemetry
        if telemetry is not None:
            telemetry(event)


def _store_of(store: str | Store, name: str) -> Store:
    if isinstance(store, str):
        return stores.from_url(store)
    if not hasattr(store, "capabilities"):
        raise ConfigError(f"{name}: {store!r} is neither a URL nor a store: {stores.KNOWN}")
    return store

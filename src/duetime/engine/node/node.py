"""A node: one process in the fleet. It joins, works in a session, and starts a new session when the store
declared it dead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.node.heartbeat import Heartbeat
from duetime.engine.node.options import HandlerRegistry, NodeOptions
from duetime.engine.node.registry import TaskDefaultsPublisher
from duetime.engine.node.session import NodeSession, Unwritten, limits_of
from duetime.errors import ConfigError, DuetimeError, StoreError
from duetime.lease import LeaseTable
from duetime.model.events import NodeFenced, NodeJoined, NodeLeft, TurnFailed
from duetime.model.instant import SECOND
from duetime.model.lease import NodeDraft, NodeId
from duetime.observer import Observers
from duetime.queue import TicketQueue
from duetime.store import Store

REJOIN_INTERVAL = SECOND // 2
CLOCK_SAMPLES = 5  # readings of the store's clock before the first job may start


class Node:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        tasks: HandlerRegistry,
        options: NodeOptions,
        observers: Observers,
        heartbeats: Callable[[], Heartbeat],
        on_settled: Callable[[list[UUID]], None] = lambda _: None,
        connect: Callable[[], TicketQueue] | None = None,
        leases: LeaseTable | None = None,
        admit: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`connect` makes a connection to the broker, if there is one. `leases` holds the leases instead of
        the store. `admit` raises if no node may work on the store; it is asked before each session, because
        the store may have been restored in between."""
        if "dispatcher" in options.roles and connect is None:
            raise ConfigError(
                "roles: a dispatcher needs a broker: give its address as queue (--queue URL), "
                "or leave out the role"
            )
        self._connect = connect
        self._leases = leases
        self._admit = admit
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._options = options
        self._observers = observers
        self._heartbeats = heartbeats
        self._on_settled = on_settled
        self._defaults = TaskDefaultsPublisher(tasks.defaults if "worker" in options.roles else {})
        self._session: NodeSession | None = None
        self._over: asyncio.Event = asyncio.Event()  # this session must end: stopped or fenced
        self._stopping = False
        self._unwritten: Unwritten = []
        self.stubborn: list[asyncio.Task[None]] = []  # runners whose tasks ignored their cancellation
        self.started: asyncio.Event = asyncio.Event()
        self.ended: asyncio.Event = asyncio.Event()  # it no longer runs, for whatever reason

    @property
    def id(self) -> NodeId | None:
        return None if self._session is None else self._session.node

    @property
    def heartbeat(self) -> Heartbeat | None:
        """None before it has joined, and before it has joined again."""
        return None if self._session is None else self._session.heartbeat

    @property
    def stopping(self) -> bool:
        return self._stopping

    @property
    def broker_up(self) -> bool | None:
        """Whether the broker answers; None if the node has none."""
        return None if self._session is None else self._session.broker_up

    @property
    def leases_up(self) -> bool:
        """Whether the service that holds the leases answers."""
        return self._session is None or self._session.leases_up

    @property
    def running(self) -> int:
        return 0 if self._session is None else self._session.running

    async def run(self) -> None:
        """Until `stop`. The first join must succeed, so that a wrong set-up is reported immediately; later
        joins are repeated until they succeed."""
        try:
            await self._live()
            await self._live_on()
        finally:
            self.ended.set()

    async def _live_on(self) -> None:
        while not self._stopping:
            try:
                await self._live()
            except (
                DuetimeError
            ) as problem:  # also a server that rejects the connection for a while: it accepted it before
                self._observers(
                    TurnFailed("node", problem, REJOIN_INTERVAL, expected=isinstance(problem, StoreError))
                )
                await self._clock.sleep(int(REJOIN_INTERVAL * (0.5 + self._clock.noise())))

    def stop(self) -> None:
        """Begin the orderly end; `run` returns when it is done."""
        self._stopping = True
        self._over.set()

    def interrupt(self) -> None:
        """Do not wait for running jobs any longer; they are released."""
        if self._session is not None:
            self._session.interrupt()

    # -- called by the heartbeat
    def fenced(self, reason: str) -> None:
        if self._session is not None:
            self._observers(NodeFenced(self._session.node, reason))
        self._over.set()

    def cancels(self, job_ids: Sequence[UUID]) -> None:
        if self._session is not None:
            self._session.cancel(job_ids)

    async def _live(self) -> None:
        """One session from join to leave."""
        if not self._stopping:
            self._over.clear()
        if self._admit is not None:
            await self._admit()
        for _ in range(CLOCK_SAMPLES):
            await self._clock.follow(self._store.time)
        heartbeat, options = self._heartbeats(), self._options
        limits = limits_of(self._tasks.handlers) if "worker" in options.roles else ()
        await heartbeat.start(
            NodeDraft(options.name, options.roles, options.version, limits), options.lease, self
        )
        unwritten, self._unwritten = self._unwritten, []
        session = self._session = NodeSession(
            self._store,
            self._clock,
            self._tasks,
            options,
            self._observers,
            heartbeat,
            self._on_settled,
            self._defaults,
            unwritten,
            self._connect,
            self._leases,
        )
        session.start()
        self._observers(NodeJoined(heartbeat.node, options.roles))
        self.started.set()
        try:
            await self._over.wait()
        finally:
            if self._stopping and heartbeat.trusted():
                self.stubborn = await session.stop()
            else:
                self._unwritten = await session.abort()
            await self._leave(heartbeat)
            self._session = None
            self._observers(NodeLeft(heartbeat.node))

    async def _leave(self, heartbeat: Heartbeat) -> None:
        try:
            await heartbeat.stop(leave=True)
        except DuetimeError:
            return  # the lease ends by itself

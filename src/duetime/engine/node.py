"""A node: one process in the fleet. Joins, lives as an incarnation, and starts anew when the store declared it dead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.heart import Heart, HeartRunner
from duetime.engine.incarnation import Incarnation
from duetime.engine.options import NodeOptions
from duetime.engine.tasks import Tasks
from duetime.engine.terms import Publisher
from duetime.errors import DuetimeError, StoreError
from duetime.model.events import NodeFenced, NodeJoined, NodeLeft, TurnFailed
from duetime.model.instant import SECOND
from duetime.model.job import Claimed
from duetime.model.lease import NodeDraft, NodeId
from duetime.model.settle import Settlement
from duetime.observer import Observers
from duetime.store import Store

REJOIN_AFTER = SECOND // 2
FIRST_SAMPLES = 5  # readings of the store's clock before the first job may start


class Node:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        tasks: Tasks,
        options: NodeOptions,
        observers: Observers,
        hearts: Callable[[], HeartRunner],
        on_settled: Callable[[list[UUID]], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._options = options
        self._observers = observers
        self._hearts = hearts
        self._on_settled = on_settled
        self._terms = Publisher(tasks.terms if "worker" in options.roles else {})
        self._incarnation: Incarnation | None = None
        self._over: asyncio.Event = asyncio.Event()  # this incarnation has to end: stopped or fenced
        self._stopping = False
        self._unwritten: list[tuple[Settlement, Claimed]] = []
        self.started: asyncio.Event = asyncio.Event()
        self.ended: asyncio.Event = asyncio.Event()  # it runs no more, for whatever reason

    @property
    def id(self) -> NodeId | None:
        return None if self._incarnation is None else self._incarnation.node

    @property
    def heart(self) -> Heart | None:
        """None while it has not joined, or not joined again."""
        return None if self._incarnation is None else self._incarnation.heart

    @property
    def stopping(self) -> bool:
        return self._stopping

    @property
    def running(self) -> int:
        return 0 if self._incarnation is None else self._incarnation.running

    async def run(self) -> None:
        """Until `stop`. The first join must succeed, so that a wrong set-up is told at once; later ones are tried until they do."""
        try:
            await self._live()
            await self._live_on()
        finally:
            self.ended.set()

    async def _live_on(self) -> None:
        while not self._stopping:
            try:
                await self._live()
            except DuetimeError as problem:  # also a server that does not let us in for a while: it did before
                self._observers(TurnFailed("node", problem, REJOIN_AFTER, expected=isinstance(problem, StoreError)))
                await self._clock.sleep(int(REJOIN_AFTER * (0.5 + self._clock.noise())))

    def stop(self) -> None:
        """Begin the orderly end; `run` returns when it is done."""
        self._stopping = True
        self._over.set()

    def interrupt(self) -> None:
        """Do not wait for running jobs any longer; they are given back."""
        if self._incarnation is not None:
            self._incarnation.interrupt()

    # -- told by the heart --------------------------------------------------------------------------------------------
    def fenced(self, reason: str) -> None:
        if self._incarnation is not None:
            self._observers(NodeFenced(self._incarnation.node, reason))
        self._over.set()

    def cancels(self, job_ids: Sequence[UUID]) -> None:
        if self._incarnation is not None:
            self._incarnation.cancel(job_ids)

    async def _live(self) -> None:
        """One incarnation from join to leave."""
        if not self._stopping:
            self._over.clear()
        for _ in range(FIRST_SAMPLES):
            await self._clock.follow(self._store.time)
        runner = self._hearts()
        draft = NodeDraft(self._options.name, self._options.roles, self._options.version)
        heart = await runner.start(draft, self._options.lease, self)
        incarnation = Incarnation(
            heart.node,
            self._store,
            self._clock,
            self._tasks,
            self._options,
            self._observers,
            heart,
            self._on_settled,
            self._terms,
        )
        self._incarnation = incarnation
        incarnation.start()
        incarnation.inherit(self._unwritten)
        self._unwritten = []
        self._observers(NodeJoined(heart.node, self._options.roles))
        self.started.set()
        try:
            await self._over.wait()
        finally:
            if self._stopping and heart.trusted():
                await incarnation.stop()
            else:
                self._unwritten = await incarnation.abort()
            await self._let_go(runner)
            self._incarnation = None
            self._observers(NodeLeft(heart.node))

    async def _let_go(self, runner: HeartRunner) -> None:
        try:
            await runner.stop(leave=True)
        except DuetimeError:
            return  # the lease ends by itself

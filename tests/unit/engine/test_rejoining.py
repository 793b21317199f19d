"""A node that lost its id comes back, whatever keeps it from the store for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast
from uuid import UUID

import pytest

from duetime.engine.node.heartbeat import Heartbeat, HeartbeatListener
from duetime.engine.node.node import Node
from duetime.engine.node.options import HandlerRegistry, NodeOptions
from duetime.engine.node.registry import profiles, published
from duetime.engine.submit.build import Defaults
from duetime.errors import ConfigError, StoreUnavailable
from duetime.model.events import Event, NodeJoined
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Beat, NodeDraft, NodeId
from duetime.observer import Observers
from duetime.store import Store
from duetime.stores.memory import MemoryStore
from tests.unit.engine.fake_store import play, virtual_clock

TTL = 15 * SECOND
OPTIONS = NodeOptions("node", "1", roles=("worker",), lease=TTL)


class Heartbeats:
    """Each session of a node begins as the next of `answers` says; its heartbeat joins and does not beat."""

    def __init__(self, store: MemoryStore, *answers: Exception | None) -> None:
        self._store = store
        self._answers = iter(answers)

    def __call__(self) -> Heartbeat:
        return Joining(self._store, next(self._answers, None))


class Joining(Heartbeat):
    def __init__(self, store: MemoryStore, problem: Exception | None) -> None:
        super().__init__(store, virtual_clock(), Observers())
        self._problem = problem

    async def start(self, draft: NodeDraft, ttl: Micros, listener: HeartbeatListener) -> None:
        if self._problem is not None:
            raise self._problem
        await super().start(draft, ttl, listener)

    async def run_once(self) -> None:
        return None


@pytest.mark.parametrize("problem", [StoreUnavailable("away"), ConfigError("the server does not let us in")])
def test_a_node_that_is_fenced_joins_again_when_it_can(problem: Exception) -> None:
    async def scene() -> None:
        clock, told = virtual_clock(), list[Event]()
        store = MemoryStore(clock.monotonic)
        heartbeats = Heartbeats(store, None, problem, problem)
        node = Node(store, clock, HandlerRegistry({}), OPTIONS, Observers([told.append]), heartbeats)
        life = asyncio.create_task(node.run())
        await node.started.wait()
        node.fenced("it was declared dead")
        async with asyncio.timeout(60):
            while sum(isinstance(event, NodeJoined) for event in told) < 2:
                assert not life.done()
                await asyncio.sleep(0.1)
        node.stop()
        await life

    play(scene)


def test_a_node_that_comes_back_does_not_speak_up_against_those_that_started_since() -> None:
    async def scene() -> None:
        clock = virtual_clock()
        store, lives, begun = MemoryStore(clock.monotonic), list[asyncio.Task[None]](), list[Node]()

        async def begin(queue: str) -> Node:
            tasks = HandlerRegistry({}, defaults={"work": Defaults(queue)})
            node = Node(store, clock, tasks, OPTIONS, Observers([]), Heartbeats(store))
            lives.append(asyncio.create_task(node.run()))
            begun.append(node)
            await said(lambda: node.id)
            return node

        async def said(node: Callable[[], NodeId | None]) -> None:
            async with asyncio.timeout(60):
                while node() not in await profiles(store):
                    await asyncio.sleep(0.1)
            await asyncio.sleep(1)  # what follows in the same turn

        old = await begin("old")
        first = old.id
        await begin("new")
        old.fenced("it was declared dead")
        await said(lambda: None if old.id == first else old.id)
        assert (await published(store, "work")).defaults.queue == "new"
        for node in begun:
            node.stop()
        await asyncio.gather(*lives)

    play(scene)


class Shut:
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        return NodeId(1)

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        raise ConfigError("the server does not let us in")


class Listener:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def fenced(self, reason: str) -> None:
        self.reasons.append(reason)

    def cancels(self, job_ids: Sequence[UUID]) -> None: ...


def test_a_heart_that_is_not_let_in_any_more_stops_what_runs_before_its_lease_ends() -> None:
    async def scene() -> None:
        clock, listener = virtual_clock(), Listener()
        heartbeat = Heartbeat(cast(Store, Shut()), clock, Observers())
        await heartbeat.start(NodeDraft("node", (), "1"), TTL, listener)
        with pytest.raises(ConfigError):
            await heartbeat.run_once()
        assert listener.reasons == []
        await asyncio.sleep((TTL - 1) / SECOND)
        await heartbeat.run_once()
        assert set(listener.reasons) == {"its lease could not be renewed in time"}

    play(scene)

"""A node that lost its id comes back, whatever keeps it from the store for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast
from uuid import UUID

import pytest

from duetime.engine.drafts import Defaults
from duetime.engine.heart import Heart, HeartListener
from duetime.engine.herald import profiles
from duetime.engine.node import Node
from duetime.engine.options import NodeOptions
from duetime.engine.tasks import Tasks
from duetime.engine.terms import published
from duetime.errors import ConfigError, StoreUnavailable
from duetime.model.events import Event, NodeJoined
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Beat, NodeDraft, NodeId
from duetime.observer import Observers
from duetime.store import Store
from duetime.stores.memory import MemoryStore
from tests.unit.engine.paper import play, virtual_clock

TTL = 15 * SECOND
OPTIONS = NodeOptions("node", "1", roles=("worker",), lease=TTL)


class Doors:
    """Hearts that do not beat: each life of a node begins as the next of `answers` says."""

    def __init__(self, store: MemoryStore, *answers: Exception | None) -> None:
        self._store = store
        self._answers = iter(answers)

    async def start(self, draft: NodeDraft, ttl: Micros, listener: HeartListener) -> Heart:
        if (problem := next(self._answers, None)) is not None:
            raise problem
        clock = virtual_clock()
        return Heart(self._store, clock, await self._store.join(draft, ttl), ttl, listener, clock.monotonic())

    async def stop(self, leave: bool) -> None: ...


@pytest.mark.parametrize("problem", [StoreUnavailable("away"), ConfigError("the server does not let us in")])
def test_a_node_that_is_fenced_joins_again_when_it_can(problem: Exception) -> None:
    async def scene() -> None:
        clock, told = virtual_clock(), list[Event]()
        store = MemoryStore(clock.monotonic)
        doors = Doors(store, None, problem, problem)
        node = Node(store, clock, Tasks({}), OPTIONS, Observers([told.append]), lambda: doors)
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
            tasks = Tasks({}, terms={"work": Defaults(queue)})
            node = Node(store, clock, tasks, OPTIONS, Observers([]), lambda: Doors(store))
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
        assert (await published(store, "work")).queue == "new"
        for node in begun:
            node.stop()
        await asyncio.gather(*lives)

    play(scene)


class Shut:
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
        heart = Heart(cast(Store, Shut()), clock, NodeId(1), TTL, listener, clock.monotonic())
        with pytest.raises(ConfigError):
            await heart.run_once()
        assert listener.reasons == []
        await asyncio.sleep((TTL - 1) / SECOND)
        await heart.run_once()
        assert listener.reasons == ["its lease could not be renewed in time"]

    play(scene)

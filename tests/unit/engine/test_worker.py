"""The worker where the simulation found it wrong: jobs whose claim it never heard of, and starts after a long silence (B10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest

from duetime.engine.alarm import LoopAlarm
from duetime.engine.clock import NodeClock
from duetime.engine.worker import Worker
from duetime.invoker import Context, Policies
from duetime.model.attempt import Ending
from duetime.model.job import Claimed, Delivery, State
from duetime.model.retry import Retry
from duetime.testing.simulation.loop import SimulationLoop


class Handler:
    policies = Policies(Retry(), None, Delivery.AT_LEAST_ONCE)

    def __init__(self) -> None:
        self.started: list[int] = []

    async def invoke(self, context: Context, payload: Any) -> Any:
        self.started.append(context.attempt)


@pytest.fixture
def virtual() -> Iterator[SimulationLoop]:
    loop = SimulationLoop(Random(0))
    yield loop
    loop.close()


def job(attempt: int = 1, losses: int = 0) -> Claimed:
    return Claimed(UUID(int=3), attempt, "task", b"{}", 0, "default", 5, 0, 0, losses, False, None, None, None, None, None, None, "default")


async def accept(job_id: UUID, attempt: int) -> bool:
    return True


def make(handler: Handler, begin: Callable[[UUID, int], Awaitable[bool]] = accept) -> Worker:
    loop = asyncio.get_running_loop()
    clock = NodeClock(lambda: round(loop.time() * 1e6), LoopAlarm, lambda: 0.0)
    return Worker({"task": handler}, clock, 4, lambda: None, begin)


def test_a_stranger_is_given_back_unstarted(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        handler = Handler()
        worker = make(handler)
        worker.give_back_strangers([job()])
        assert [(done.attempt, done.state, done.ending) for done in worker.done] == [(1, State.PENDING, Ending.RELEASED)]
        assert worker.held == 1
        assert handler.started == []

    virtual.run_until_complete(scene())


def test_a_stranger_that_came_again_is_another_one(virtual: SimulationLoop) -> None:
    """The reply to giving back attempt 1 was lost, and so was the one to the claim of attempt 2."""

    async def scene() -> None:
        worker = make(Handler())
        worker.give_back_strangers([job(attempt=1)])
        worker.give_back_strangers([job(attempt=2)])
        worker.give_back_strangers([job(attempt=2)])
        assert [done.attempt for done in worker.done] == [1, 2]

    virtual.run_until_complete(scene())


def test_what_this_worker_knows_is_no_stranger(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        worker = make(Handler())
        worker.take([job()])
        worker.give_back_strangers([job()])
        assert worker.done == []
        assert worker.held == 1

    virtual.run_until_complete(scene())


def test_a_lease_that_ended_while_a_start_was_announced_stops_the_start(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        handler = Handler()

        async def slow(job_id: UUID, attempt: int) -> bool:
            worker.may_start = lambda: False
            return True

        worker = make(handler, slow)
        worker.take([job(losses=1)])
        await asyncio.sleep(1)
        assert handler.started == []
        assert [done.ending for done in worker.done] == [Ending.RELEASED]

    virtual.run_until_complete(scene())


def test_a_suspect_that_is_somebody_else_s_is_let_go(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        async def refuse(job_id: UUID, attempt: int) -> bool:
            return False

        handler = Handler()
        worker = make(handler, refuse)
        worker.take([job(losses=1)])
        await asyncio.sleep(1)
        assert (handler.started, worker.done, worker.held) == ([], [], 0)

    virtual.run_until_complete(scene())

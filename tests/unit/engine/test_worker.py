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
from duetime.engine.worker import LONG_TURN, MOST_STARTS, Worker
from duetime.invoker import Context, Policies
from duetime.model.attempt import Ending
from duetime.model.job import Claimed, Delivery, State
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.testing.simulation.loop import SimulationLoop
from tests.unit.engine.paper import PaperStore, make_desk


class Handler:
    policies = Policies(Retry(), None, Delivery.AT_LEAST_ONCE)
    limit: Limit | None = None

    def __init__(self) -> None:
        self.started: list[int] = []

    async def invoke(self, context: Context, payload: bytes) -> Any:
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


def make(
    handler: Handler, begin: Callable[[UUID, int], Awaitable[bool]] = accept, slots: int = 4, store: PaperStore | None = None
) -> Worker:
    loop = asyncio.get_running_loop()
    clock = NodeClock(lambda: round(loop.time() * 1e6), LoopAlarm, lambda: 0.0)
    return Worker({"task": handler}, clock, slots, lambda: None, begin, make_desk(store or PaperStore(), clock=clock))


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


class Sleeper(Handler):
    """Tells the priority of what it starts, and takes a while."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__()
        self._seconds = seconds

    async def invoke(self, context: Context, payload: bytes) -> Any:
        self.started.append(context.job.priority)
        await asyncio.sleep(self._seconds)


def numbered(number: int, priority: int = 5, gate: str | None = None, failures: int = 0) -> Claimed:
    return job()._replace(id=UUID(int=number), priority=priority, gate=gate, failures=failures)


def test_an_urgent_job_passes_those_claimed_before_it(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        handler = Sleeper()
        worker = make(handler, slots=1)
        worker.take([numbered(number, priority=0) for number in range(10)])
        await asyncio.sleep(0.5)
        worker.take([numbered(99, priority=9)])
        await asyncio.sleep(1)
        assert handler.started == [0, 9]

    virtual.run_until_complete(scene())


def test_a_job_claimed_ahead_passes_them_when_its_time_has_come(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        handler = Sleeper()
        worker = make(handler, slots=1)
        worker.take([numbered(number, priority=0) for number in range(10)])
        worker.take([numbered(99, priority=9)._replace(due_at=500_000)])
        await asyncio.sleep(1.5)
        assert handler.started == [0, 9]

    virtual.run_until_complete(scene())


class Failing(Handler):
    async def invoke(self, context: Context, payload: bytes) -> Any:
        raise ValueError("bad")


@pytest.mark.parametrize("handler", [Handler(), Failing()])
def test_the_end_of_a_gated_job_tells_those_who_wait_at_the_gate(virtual: SimulationLoop, handler: Handler) -> None:
    """However it ends, and whenever they fell due."""

    async def scene() -> None:
        await asyncio.sleep(5)
        worker = make(handler)
        worker.take([numbered(1, gate="g")])
        await asyncio.sleep(0.1)
        assert len(worker.done) == 1
        assert worker.hints == {("default", 5): 0}

    virtual.run_until_complete(scene())


def test_the_end_of_a_job_of_a_limited_queue_tells_those_who_wait(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        worker = make(Handler())
        worker.limited = frozenset({"default"})
        worker.take([numbered(1)])
        await asyncio.sleep(0.1)
        assert worker.hints == {("default", 5): 0}

    virtual.run_until_complete(scene())


def test_the_end_of_any_other_job_tells_nobody(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        worker = make(Handler())
        worker.take([numbered(1)])
        await asyncio.sleep(0.1)
        assert worker.hints == {}

    virtual.run_until_complete(scene())


def test_progress_that_is_refused_interrupts_the_attempt(virtual: SimulationLoop) -> None:
    class Telling(Handler):
        async def invoke(self, context: Context, payload: bytes) -> Any:
            await context.progress(1)
            await asyncio.sleep(60)

    async def scene() -> None:
        store = PaperStore()
        worker = make(Telling(), store=store)
        store.refused = {UUID(int=3)}
        worker._desk._on_fenced = worker.fence
        worker.take([job(attempt=2)])
        await asyncio.sleep(1)
        assert [done.ending for done in worker.done] == [Ending.LOST]

    virtual.run_until_complete(scene())


def test_fencing_an_attempt_leaves_the_next_one_of_the_same_job_alone(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        worker = make(Sleeper(60))
        worker.take([job(attempt=1), job(attempt=2)])
        await asyncio.sleep(1)
        worker.fence(UUID(int=3), 1)
        await asyncio.sleep(1)
        assert [(done.attempt, done.ending) for done in worker.done] == [(1, Ending.LOST)]
        assert [running.attempt for running in worker.running] == [2]

    virtual.run_until_complete(scene())


class Waiting(Handler):
    """Starts, and waits for an answer. A start takes some microseconds of its clock."""

    def __init__(self, takes: int = 0) -> None:
        super().__init__()
        self.now = 1_000
        self._takes = takes

    async def invoke(self, context: Context, payload: bytes) -> Any:
        self.now += self._takes
        await super().invoke(context, payload)
        await asyncio.sleep(3_600)


async def most_starts_in_a_turn(handler: Waiting, count: int) -> tuple[int, int]:
    """Of `count` jobs that are due together; and how many turns of the event loop it takes to start them all."""
    clock = NodeClock(lambda: handler.now, LoopAlarm, lambda: 0.0)
    worker = Worker({"task": handler}, clock, count, lambda: None, accept, make_desk(PaperStore(), clock=clock))
    worker.take([numbered(number) for number in range(count)])
    turns, most, begun = 0, 0, 0
    while begun < count:
        await asyncio.sleep(0)
        turns, most, begun = turns + 1, max(most, len(handler.started) - begun), len(handler.started)
    worker.dismiss()
    return most, turns


async def test_what_is_due_together_starts_in_a_few_turns() -> None:
    most, turns = await most_starts_in_a_turn(Waiting(), 500)
    assert most <= MOST_STARTS
    assert turns < 30


async def test_slow_starts_leave_others_their_turns() -> None:
    most, _ = await most_starts_in_a_turn(Waiting(takes=LONG_TURN), 100)
    assert most <= 2


async def test_tasks_that_never_suspend_need_no_more_than_a_runner_or_two() -> None:
    handler = Handler()
    worker = make(handler, slots=500)
    for batch in range(5):
        worker.take([numbered(500 * batch + number) for number in range(100)])
        await asyncio.sleep(0.01)
    assert len(handler.started) == 500
    assert len(worker._slots) <= 2
    worker.dismiss()

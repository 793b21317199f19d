"""The worker where the simulation found it wrong: jobs whose claim it never heard of, and starts after a long
silence (B10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any, cast
from uuid import UUID

import pytest

from duetime.engine.node.timer import LoopTimer, NodeClock
from duetime.engine.run.capacity import Capacity
from duetime.engine.run.checkpoints import CheckpointWriter
from duetime.engine.run.outbox import Outbox
from duetime.engine.run.perform import Stop
from duetime.engine.run.start_check import StartCheck
from duetime.engine.run.worker import LONG_TURN, MAX_STARTS, Worker
from duetime.invoker import Context, Policies
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, Delivery, Ending, State
from duetime.model.lease import NodeId
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.settle import Settlement
from duetime.store import Store
from duetime.testing.simulation.loop import SimulationLoop
from tests.unit.engine.fake_store import FakeStore


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
    return Claimed(
        UUID(int=3),
        attempt,
        "task",
        b"{}",
        0,
        "default",
        5,
        0,
        0,
        losses,
        False,
        None,
        None,
        None,
        None,
        None,
        None,
        "default",
    )


async def accept(job_id: UUID, attempt: int) -> bool:
    return True


class Made:
    """A worker, and what it reports to."""

    def __init__(
        self,
        handler: Handler,
        record_start: Callable[[UUID, int], Awaitable[bool]] = accept,
        slots: int = 4,
        store: FakeStore | None = None,
        clock: NodeClock | None = None,
        threads: int | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        clock = clock or NodeClock(lambda: round(loop.time() * 1e6), LoopTimer, lambda: 0.0)
        self.trusted = True
        self.outbox = Outbox(lambda: None)
        self.capacity = Capacity(
            slots,
            lambda: self.trusted,
            clock.monotonic,
            threads=threads or 0,
            threaded=frozenset() if threads is None else {"task"},
        )
        kept = cast(Store, store or FakeStore())
        writer = CheckpointWriter(kept, clock, NodeId(7), lambda: True, self._fence)
        check = StartCheck(kept, clock)
        self.worker = Worker(
            {"task": handler}, clock, self.capacity, self.outbox, record_start, writer, check
        )

    @property
    def held(self) -> int:
        return self.capacity.slots - self.capacity.room

    @property
    def done(self) -> list[Settlement]:
        return self.outbox.batch(1_000)[0]

    def _fence(self, job_id: UUID, attempt: int) -> None:
        self.worker.fence(job_id, attempt)


def make(
    handler: Handler,
    record_start: Callable[[UUID, int], Awaitable[bool]] = accept,
    slots: int = 4,
    **options: Any,
) -> Made:
    return Made(handler, record_start, slots, **options)


def test_a_stranger_is_given_back_unstarted(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        handler = Handler()
        made = make(handler)
        made.worker.release_unknown([job()])
        assert [(done.attempt, done.state, done.ending) for done in made.done] == [
            (1, State.PENDING, Ending.RELEASED)
        ]
        assert made.held == 1
        assert handler.started == []

    virtual.run_until_complete(scene())


def test_a_stranger_that_came_again_is_another_one(virtual: SimulationLoop) -> None:
    """The reply to giving back attempt 1 was lost, and so was the one to the claim of attempt 2."""

    async def scene() -> None:
        made = make(Handler())
        made.worker.release_unknown([job(attempt=1)])
        made.worker.release_unknown([job(attempt=2)])
        made.worker.release_unknown([job(attempt=2)])
        assert [done.attempt for done in made.done] == [1, 2]

    virtual.run_until_complete(scene())


def test_what_this_worker_knows_is_no_stranger(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        made = make(Handler())
        made.worker.take([job()])
        made.worker.release_unknown([job()])
        assert made.done == []
        assert made.held == 1

    virtual.run_until_complete(scene())


def test_a_lease_that_ended_while_a_start_was_announced_stops_the_start(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        handler = Handler()

        async def slow(job_id: UUID, attempt: int) -> bool:
            made.trusted = False
            return True

        made = make(handler, slow)
        made.worker.take([job(losses=1)])
        await asyncio.sleep(1)
        assert handler.started == []
        assert [done.ending for done in made.done] == [Ending.RELEASED]

    virtual.run_until_complete(scene())


def test_suspect_job_of_another_node_is_released(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        async def refuse(job_id: UUID, attempt: int) -> bool:
            return False

        handler = Handler()
        made = make(handler, refuse)
        made.worker.take([job(losses=1)])
        await asyncio.sleep(1)
        assert (handler.started, made.done, made.held) == ([], [], 0)

    virtual.run_until_complete(scene())


class Stubborn(Handler):
    async def invoke(self, context: Context, payload: bytes) -> Any:
        for _ in range(100):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1)


@pytest.mark.parametrize(("after", "waits"), [(1, []), (5, [1])])
def test_second_signal_ends_the_wait_for_a_task_that_ignores_its_cancellation(
    virtual: SimulationLoop, after: int, waits: list[int]
) -> None:
    async def scene() -> None:
        loop, said = asyncio.get_running_loop(), list[int]()
        made = make(Stubborn())
        made.worker.take([job()])
        await asyncio.sleep(1)
        began = loop.time()
        loop.call_later(after, made.worker.hurry)
        await made.worker.drain(30 * SECOND, said.append)
        assert (said, round(loop.time() - began)) == (waits, after + 1)

    virtual.run_until_complete(scene())


class Sleeper(Handler):
    """Tells the priority of what it starts, and takes a while."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__()
        self._seconds = seconds

    async def invoke(self, context: Context, payload: bytes) -> Any:
        self.started.append(context.job.priority)
        await asyncio.sleep(self._seconds)


def numbered(number: int, priority: int = 5, limit_key: str | None = None, failures: int = 0) -> Claimed:
    return job()._replace(id=UUID(int=number), priority=priority, limit_key=limit_key, failures=failures)


def test_an_urgent_job_passes_those_claimed_before_it(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        handler = Sleeper()
        made = make(handler, slots=1)
        made.worker.take([numbered(number, priority=0) for number in range(10)])
        await asyncio.sleep(0.5)
        made.worker.take([numbered(99, priority=9)])
        await asyncio.sleep(1)
        assert handler.started == [0, 9]

    virtual.run_until_complete(scene())


def test_a_job_claimed_ahead_passes_them_when_its_time_has_come(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        handler = Sleeper()
        made = make(handler, slots=1)
        made.worker.take([numbered(number, priority=0) for number in range(10)])
        made.worker.take([numbered(99, priority=9)._replace(due_at=500_000)])
        await asyncio.sleep(1.5)
        assert handler.started == [0, 9]

    virtual.run_until_complete(scene())


class Failing(Handler):
    async def invoke(self, context: Context, payload: bytes) -> Any:
        raise ValueError("bad")


def test_a_retry_is_announced_for_its_due_time(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        made = make(Failing())
        made.worker.take([numbered(1)])
        await asyncio.sleep(0.1)
        [settlement] = made.done
        assert made.outbox.take_hints() == [JobHint("default", 5, settlement.due_at)]

    virtual.run_until_complete(scene())


def test_jobs_under_one_permit_run_one_after_the_other(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        handler = Sleeper()
        made = make(handler)
        permit = UUID(int=77)
        made.worker.take([numbered(number, limit_key="k")._replace(permit=permit) for number in range(3)])
        assert made.worker.free_permits == 3
        for expected in (1, 2, 3):
            await asyncio.sleep(0.5)
            assert len(handler.started) == expected
            await asyncio.sleep(0.5)
        await asyncio.sleep(0.1)
        assert len(made.done) == 3

    virtual.run_until_complete(scene())


def test_a_closed_worker_releases_successors(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        made = make(Handler())
        made.worker.close(Stop.SHUTDOWN)
        made.worker.take_successors([numbered(1, limit_key="k")])
        assert [done.ending for done in made.done] == [Ending.RELEASED]

    virtual.run_until_complete(scene())


def test_the_end_of_a_job_of_a_limited_queue_tells_those_who_wait(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        made = make(Handler())
        made.outbox.limited_queues = frozenset({"default"})
        made.worker.take([numbered(1)])
        await asyncio.sleep(0.1)
        assert made.outbox.take_hints() == [JobHint("default", 5, 0)]

    virtual.run_until_complete(scene())


def test_end_of_any_other_job_wakes_no_other_node(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        made = make(Handler())
        made.worker.take([numbered(1)])
        await asyncio.sleep(0.1)
        assert made.outbox.take_hints() == []

    virtual.run_until_complete(scene())


def test_progress_that_is_refused_interrupts_the_attempt(virtual: SimulationLoop) -> None:
    class Telling(Handler):
        async def invoke(self, context: Context, payload: bytes) -> Any:
            await context.progress(1)
            await asyncio.sleep(60)

    async def scene() -> None:
        store = FakeStore()
        made = make(Telling(), store=store)
        store.refused = {UUID(int=3)}
        made.worker.take([job(attempt=2)])
        await asyncio.sleep(1)
        assert [done.ending for done in made.done] == [Ending.LOST]

    virtual.run_until_complete(scene())


def test_fencing_an_attempt_leaves_the_next_one_of_the_same_job_alone(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        made = make(Sleeper(60))
        made.worker.take([job(attempt=1), job(attempt=2)])
        await asyncio.sleep(1)
        made.worker.fence(UUID(int=3), 1)
        await asyncio.sleep(1)
        assert [(done.attempt, done.ending) for done in made.done] == [(1, Ending.LOST)]
        assert [running.attempt for running in made.worker.running] == [2]

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
    """Of `count` jobs that are due together; and how many turns of the event loop it takes to start them
    all."""
    clock = NodeClock(lambda: handler.now, LoopTimer, lambda: 0.0)
    made = make(handler, slots=count, clock=clock)
    made.worker.take([numbered(number) for number in range(count)])
    turns, most, begun = 0, 0, 0
    while begun < count:
        await asyncio.sleep(0)
        turns, most, begun = turns + 1, max(most, len(handler.started) - begun), len(handler.started)
    made.worker.dismiss()
    return most, turns


async def test_what_is_due_together_starts_in_a_few_turns() -> None:
    most, turns = await most_starts_in_a_turn(Waiting(), 500)
    assert most <= MAX_STARTS
    assert turns < 30


async def test_slow_starts_leave_others_their_turns() -> None:
    most, _ = await most_starts_in_a_turn(Waiting(takes=LONG_TURN), 100)
    assert most <= 2


async def test_tasks_that_never_suspend_need_no_more_than_a_runner_or_two() -> None:
    handler = Handler()
    made = make(handler, slots=500)
    for batch in range(5):
        made.worker.take([numbered(500 * batch + number) for number in range(100)])
        await asyncio.sleep(0.01)
    assert len(handler.started) == 500
    assert len(made.worker._slots) <= 2
    made.worker.dismiss()


class Lengthy(Handler):
    policies = Policies(Retry(), 10 * SECOND, Delivery.AT_LEAST_ONCE)

    async def invoke(self, context: Context, payload: bytes) -> Any:
        await asyncio.sleep(8)


def test_a_job_without_a_thread_has_not_started_and_does_not_time_out(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        made = Made(Lengthy(), threads=1)
        made.worker.take([job(1), job(2)])
        await asyncio.sleep(30)
        first, second = made.done
        assert (first.ending, second.ending) == (Ending.SUCCEEDED, Ending.SUCCEEDED)
        assert (second.started_at or 0) >= first.finished_at

    virtual.run_until_complete(scene())


def test_a_job_that_is_cancelled_while_it_has_no_thread_never_starts(virtual: SimulationLoop) -> None:
    async def scene() -> None:
        made = Made(Lengthy(), threads=1)
        other = job(2)._replace(id=UUID(int=4))
        made.worker.take([job(1), other])
        await asyncio.sleep(1)
        made.worker.stop(other.id, Stop.CANCEL)
        await asyncio.sleep(1)
        [settlement] = made.done
        assert (settlement.id, settlement.ending, settlement.started_at) == (other.id, Ending.CANCELLED, None)

    virtual.run_until_complete(scene())

"""Places at a gate: no more jobs of it start here at once than may, whatever was claimed ahead, and none is left behind (I19)."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from duetime.engine.alarm import LoopAlarm
from duetime.engine.clock import NodeClock
from duetime.engine.perform import Stop
from duetime.engine.places import MOST_AHEAD, MOST_TURNS, PASSED, Places
from duetime.engine.worker import Worker
from duetime.invoker import Context, Policies
from duetime.model.attempt import Ending
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, Delivery, State
from duetime.model.limit import Bound, Limit
from duetime.model.retry import Retry
from tests.unit.engine.paper import PaperStore, make_desk, play

MILLISECOND = SECOND // 1_000


class Handler:
    """Runs until it is let go, or for as long as it is told."""

    policies = Policies(Retry(), None, Delivery.AT_LEAST_ONCE)

    def __init__(self, limit: Limit | None = None, takes: float = 0.01) -> None:
        self.limit = limit
        self.takes = takes
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.order: list[int] = []

    async def invoke(self, context: Context, payload: bytes) -> Any:
        gate = payload.decode()
        self.order.append(context.job_id.int)
        self.running[gate] += 1
        self.most[gate] = max(self.most[gate], self.running[gate])
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.running[gate] -= 1


def job(number: int, gate: str | None = "a", priority: int = 5, due_at: int = 0, target: str = "task") -> Claimed:
    payload = (gate or "").encode()
    return Claimed(
        UUID(int=number),
        1,
        target,
        payload,
        due_at,
        "default",
        priority,
        0,
        0,
        0,
        False,
        None,
        None,
        None,
        None,
        None,
        None,
        "default",
        False,
        gate,
    )


def places(limit: Limit | None) -> Places:
    return Places({"task": Handler(limit)})


def worker(handler: Handler, slots: int = 10) -> Worker:
    loop = asyncio.get_running_loop()
    clock = NodeClock(lambda: round(loop.time() * 1e6), LoopAlarm, lambda: 0.0)

    async def accept(job_id: UUID, attempt: int) -> bool:
        return True

    return Worker({"task": handler}, clock, slots, lambda: None, accept, make_desk(PaperStore(), clock=clock))


# -- who may start ----------------------------------------------------------------------------------------------------
def test_as_many_as_there_are_places_and_then_one_for_one() -> None:
    gate = places(Limit(2, per="key"))
    first, second, third, fourth = (job(number) for number in range(4))
    assert gate.admit([first, second, third]) == [first, second]
    assert gate.admit([fourth]) == []
    assert gate.waiting() == [third, fourth]
    assert gate.leave(second) is third
    assert gate.leave(first) is fourth
    assert gate.leave(third) is None
    assert gate.leave(fourth) is None
    assert gate.admit([first, second, third]) == [first, second], "places were lost"


def test_gates_have_places_of_their_own_and_others_need_none() -> None:
    gate = places(Limit(1, per="key"))
    jobs = [job(1, "a"), job(2, "b"), job(3, None), job(4, "a"), job(5, None)]
    assert gate.admit(jobs) == [jobs[0], jobs[1], jobs[2], jobs[4]]
    assert places(None).admit(jobs) == jobs
    assert places(Limit(rate="5/1s", per="key")).admit(jobs) == jobs
    assert gate.leave(jobs[2]) is None


def test_an_urgent_one_goes_first_and_nobody_is_passed_for_ever() -> None:
    gate = places(Limit(1, per="key"))
    low = job(0, priority=0)
    gate.admit([holder := job(1), low])
    for number in range(2, 20 * PASSED):
        gate.admit([job(number, priority=9)])
        following = gate.leave(holder)
        assert following is not None
        if following is low:
            assert number > PASSED, "the urgent ones did not pass"
            return
        holder = following
    raise AssertionError("it was passed for ever")


def test_what_is_forgotten_does_not_start() -> None:
    gate = places(Limit(1, per="key"))
    first, second, third = (job(number) for number in range(3))
    gate.admit([first, second, third])
    gate.forget({id(second)})
    assert gate.waiting() == [third]
    assert gate.leave(first) is third


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=60), st.integers(1, 3), st.randoms(use_true_random=False))
def test_never_more_than_the_limit_and_everybody_in_the_end(jobs: list[tuple[str, int]], most: int, chance: Random) -> None:
    gate = places(Limit(most, per="key"))
    coming = [job(number, name, priority) for number, (name, priority) in enumerate(jobs)]
    running: list[Claimed] = []
    started: list[Claimed] = []
    while coming or running:
        if coming and chance.random() < 0.5:
            admitted = gate.admit([coming.pop()])
        else:
            gone = running.pop(chance.randrange(len(running))) if running else None
            following = None if gone is None else gate.leave(gone)
            admitted = [] if following is None else [following]
        running += admitted
        started += admitted
        assert max(Counter(each.gate for each in running).values(), default=0) <= most
    assert len(started) == len(jobs)
    assert gate.waiting() == []


# -- how much to claim ahead ------------------------------------------------------------------------------------------
def ahead_of(limit: Limit, milliseconds: float) -> int:
    gate = places(limit)
    gate.took(job(1), int(milliseconds * MILLISECOND))
    return gate.ahead("task")


def test_as_much_as_is_worked_off_in_a_moment() -> None:
    two = Limit(2, per="key")
    assert places(two).ahead("task") == 0, "nothing is known yet"
    assert [ahead_of(two, milliseconds) for milliseconds in (10, 20, 50, 1_000)] == [20, 10, 4, 0]
    assert ahead_of(two, 0) == 2 * MOST_TURNS
    assert ahead_of(Limit(1_000, per="key"), 1) == MOST_AHEAD
    assert ahead_of(Limit(2, per="key", rate="100/1s"), 1) == 0, "a rate is counted when claimed"


def test_the_bounds_of_a_claim_tell_it() -> None:
    gate, bounds = places(Limit(2, per="key")), (Bound("task", 2, None), Bound("other", 3, None))
    assert gate.bounds(bounds) is bounds
    gate.took(job(1), 10 * MILLISECOND)
    assert gate.bounds(bounds) == (Bound("task", 2, None, 20), Bound("other", 3, None, 0))


def test_what_jobs_take_is_followed() -> None:
    gate = places(Limit(2, per="key"))
    for _ in range(50):
        gate.took(job(1), SECOND)
    for _ in range(50):
        gate.took(job(1), 10 * MILLISECOND)
    assert gate.ahead("task") in (18, 20)


# -- the worker -------------------------------------------------------------------------------------------------------
def test_the_worker_starts_no_more_than_may_and_all_in_the_end() -> None:
    async def scene() -> None:
        handler = Handler(Limit(2, per="key"))
        made = worker(handler)
        made.take([job(number, gate) for gate in "ab" for number in range(100 * (gate == "b"), 100 * (gate == "b") + 20)])
        await asyncio.sleep(1)
        assert handler.most == {"a": 2, "b": 2}
        assert len(made.done) == 40

    play(scene)


def test_the_next_one_starts_the_moment_a_place_is_free() -> None:
    async def scene() -> None:
        handler = Handler(Limit(1, per="key"), takes=0.01)
        made = worker(handler)
        began = asyncio.get_running_loop().time()
        made.take([job(number) for number in range(10)])
        while len(made.done) < 10:
            await asyncio.sleep(0.001)
        assert asyncio.get_running_loop().time() - began < 0.105, "somebody waited for a settlement"
        assert handler.order == list(range(10))

    play(scene)


def test_jobs_that_fall_due_later_wait_behind_their_gate_too() -> None:
    async def scene() -> None:
        handler = Handler(Limit(1, per="key"))
        made = worker(handler)
        later = round(asyncio.get_running_loop().time() * 1e6) + SECOND // 100
        made.take([job(number, due_at=later) for number in range(5)])
        await asyncio.sleep(1)
        assert (handler.most["a"], len(made.done)) == (1, 5)

    play(scene)


def test_a_shutdown_gives_back_what_waits_behind_gates() -> None:
    async def scene() -> None:
        made = worker(Handler(Limit(1, per="key"), takes=10.0))
        made.take([job(number) for number in range(5)])
        await asyncio.sleep(0.01)
        made.close(Stop.SHUTDOWN)
        assert [(each.ending, each.state, each.started_at) for each in made.done] == [(Ending.RELEASED, State.PENDING, None)] * 4
        assert ("default", 5) in made.hints, "nobody is told that they are there again"
        made.dismiss()

    play(scene)


def test_a_job_cancelled_behind_its_gate_never_starts() -> None:
    async def scene() -> None:
        handler = Handler(Limit(1, per="key"))
        made = worker(handler)
        made.take([job(number) for number in range(3)])
        made.stop(UUID(int=1), Stop.CANCEL)
        await asyncio.sleep(1)
        assert handler.order == [0, 2]
        assert Counter(each.ending for each in made.done) == {Ending.SUCCEEDED: 2, Ending.CANCELLED: 1}

    play(scene)


def test_one_cancelled_before_it_had_a_slot_makes_place_for_the_next() -> None:
    async def scene() -> None:
        handler = Handler(Limit(1, per="key"))
        made = worker(handler, slots=1)
        made.take([job(0, None), job(1), job(2)])
        await asyncio.sleep(0.005)
        made.stop(UUID(int=1), Stop.CANCEL)
        await asyncio.sleep(1)
        assert handler.order == [0, 2]

    play(scene)


def test_a_job_of_its_own_node_behind_a_gate_is_no_stranger() -> None:
    async def scene() -> None:
        made = worker(Handler(Limit(1, per="key"), takes=10.0))
        made.take(jobs := [job(number) for number in range(3)])
        await asyncio.sleep(0.01)
        made.give_back_strangers(jobs)
        assert made.done == []
        made.dismiss()

    play(scene)


def test_others_are_told_when_nobody_waits_here_any_more() -> None:
    async def scene() -> None:
        made = worker(Handler(Limit(1, per="key")))
        made.take([job(number) for number in range(3)])
        while len(made.done) < 2:
            assert made.hints == {}, "everybody was woken for nothing"
            await asyncio.sleep(0.001)
        while len(made.done) < 3:
            await asyncio.sleep(0.001)
        assert made.hints == {("default", 5): 0}

    play(scene)


def test_room_for_what_is_claimed_ahead_takes_no_slot_from_others() -> None:
    async def scene() -> None:
        made = worker(Handler(Limit(1, per="key"), takes=0.01), slots=10)
        made.take([job(0)])
        await asyncio.sleep(0.02)
        assert made.room == 10, "what has ended holds up nobody while it is written"
        made.held = 0
        made.take([job(number) for number in range(1, 6)])
        assert made.room >= 9, "those behind the gate were counted for slots"
        assert made.fresh is not None
        await asyncio.sleep(1)

    play(scene)


def test_a_node_short_of_slots_claims_nothing_ahead() -> None:
    async def scene() -> None:
        handler = Handler(Limit(1, per="key"), takes=0.01)
        made = worker(handler, slots=2)
        bounds = (Bound("task", 1, None),)
        made.take([job(0)])
        await asyncio.sleep(0.02)
        assert made.bounds(bounds)[0].ahead > 0
        made.take([job(number, f"{number}") for number in range(1, 6)])
        assert made.bounds(bounds) == bounds
        await asyncio.sleep(1)
        assert made.bounds(bounds)[0].ahead > 0

    play(scene)

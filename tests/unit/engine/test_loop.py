"""The one loop: it waits as told, wakes when asked, survives failing turns, and stops after the turn under
way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any

import pytest

from duetime.engine.node.loop import IMMEDIATELY, MAX_WAIT, MIN_WAIT, Loop
from duetime.engine.node.timer import NodeClock
from duetime.errors import StoreUnavailable
from duetime.model.events import Event, TurnFailed, TurnRecovered
from duetime.model.instant import SECOND, Micros
from duetime.observer import Observers
from duetime.testing.simulation.loop import SimulationLoop


class Script:
    """A part that does what the list says, turn by turn: a wait, None, or an exception."""

    name = "script"

    def __init__(self, turns: list[Micros | Exception | None]) -> None:
        self._turns = turns
        self.times: list[float] = []

    async def run_once(self) -> Micros | None:
        self.times.append(round(asyncio.get_running_loop().time(), 6))
        turn = self._turns.pop(0) if self._turns else None
        if isinstance(turn, Exception):
            raise turn
        return turn


@pytest.fixture
def virtual() -> Iterator[SimulationLoop]:
    loop = SimulationLoop(Random(0))
    yield loop
    loop.close()


def play(virtual: SimulationLoop, script: Script, scene: Coroutine[Any, Any, None], loop: Loop) -> None:
    async def main() -> None:
        running = asyncio.create_task(loop.run())
        await scene
        loop.stop()
        await running

    virtual.run_until_complete(main())


def make(script: Script, events: list[Event] | None = None, noise: float = 0.0) -> Loop:
    return Loop(
        script, NodeClock(noise=lambda: noise), Observers([(events if events is not None else []).append])
    )


def test_it_waits_as_told_and_then_until_woken(virtual: SimulationLoop) -> None:
    script = Script([SECOND, 2 * SECOND, None])
    play(virtual, script, asyncio.sleep(60), make(script))
    assert script.times == [0, 1, 3]


@pytest.mark.parametrize(("wait", "others"), [(0, 1), (IMMEDIATELY, 0)])
def test_a_turn_at_once_comes_before_whatever_waits_to_run(wait: Micros, others: int) -> None:
    ran: list[str] = []

    class Busy(Script):
        async def run_once(self) -> Micros | None:
            asyncio.get_running_loop().call_soon(ran.append, "other")
            ran.append("turn")
            return await super().run_once()

    async def main() -> None:
        loop = make(Busy([wait, None]))
        running = asyncio.create_task(loop.run())
        await asyncio.sleep(0.01)
        loop.stop()
        await running

    asyncio.run(main())
    assert ran[: ran.index("turn", 1)].count("other") == others


def test_a_turn_at_once_can_be_the_last(virtual: SimulationLoop) -> None:
    class Endless(Script):
        async def run_once(self) -> Micros | None:
            await asyncio.sleep(1)
            return await super().run_once()

    script = Endless([IMMEDIATELY] * 100)
    play(virtual, script, asyncio.sleep(3.5), make(script))
    assert script.times == [1, 2, 3, 4]


def test_a_wake_ends_the_wait(virtual: SimulationLoop) -> None:
    script = Script([None, None])
    loop = make(script)

    async def scene() -> None:
        await asyncio.sleep(5)
        loop.wake()
        await asyncio.sleep(1)

    play(virtual, script, scene(), loop)
    assert script.times == [0, 5]


class Woken(Script):
    """Hears a hint in the middle of its first turn."""

    hint: Callable[[], None]

    async def run_once(self) -> Micros | None:
        if not self.times:
            self.hint()
        return await super().run_once()


def test_a_wake_during_a_turn_is_not_lost(virtual: SimulationLoop) -> None:
    script = Woken([None, None])
    loop = make(script)
    script.hint = loop.wake
    play(virtual, script, asyncio.sleep(5), loop)
    assert script.times == [0, 0]


def test_failing_turns_wait_longer_and_longer_and_are_told(virtual: SimulationLoop) -> None:
    script, events = Script([StoreUnavailable("away") for _ in range(12)]), list[Event]()
    play(virtual, script, asyncio.sleep(30), make(script, events, noise=1.0))
    waits = [event.wait for event in events if isinstance(event, TurnFailed)]
    assert waits[:4] == [MIN_WAIT, 2 * MIN_WAIT, 4 * MIN_WAIT, 8 * MIN_WAIT]
    assert max(waits) == MAX_WAIT
    assert all(event.expected for event in events if isinstance(event, TurnFailed))
    assert events[-1] == TurnRecovered(script.name)


def test_a_fault_of_ours_is_told_as_unexpected(virtual: SimulationLoop) -> None:
    script, events = Script([ZeroDivisionError(), None]), list[Event]()
    play(virtual, script, asyncio.sleep(5), make(script, events))
    assert [event.expected for event in events if isinstance(event, TurnFailed)] == [False]


def test_hints_do_not_hammer_a_store_that_is_away(virtual: SimulationLoop) -> None:
    script = Woken([StoreUnavailable("away"), None])
    loop = make(script, noise=1.0)
    script.hint = loop.wake
    play(virtual, script, asyncio.sleep(5), loop)
    assert script.times == [0, MIN_WAIT / SECOND]


def test_success_forgets_earlier_failures(virtual: SimulationLoop) -> None:
    script, events = (
        Script([StoreUnavailable("a"), StoreUnavailable("b"), 0, StoreUnavailable("c")]),
        list[Event](),
    )
    play(virtual, script, asyncio.sleep(5), make(script, events, noise=1.0))
    assert [event.wait for event in events if isinstance(event, TurnFailed)] == [
        MIN_WAIT,
        2 * MIN_WAIT,
        MIN_WAIT,
    ]

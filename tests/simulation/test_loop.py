"""The simulated loop: virtual time, seeded order, processes that die without a word; and the private names it stands on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from random import Random
from typing import Any

import pytest

from duetime.testing.simulation.loop import Deadlock, Process, SimulationLoop


@pytest.fixture
def loop() -> Iterator[SimulationLoop]:
    made = SimulationLoop(Random(1))
    yield made
    made.close()


def _spawn(loop: SimulationLoop, process: Process, work: Coroutine[Any, Any, Any]) -> None:
    process.context.run(loop.create_task, work)


def test_the_private_names_it_stands_on_are_there() -> None:
    """A new Python may rename them: then this test says so, and not a simulation that silently runs in order."""
    plain = asyncio.new_event_loop()
    try:
        handle = plain.call_soon(print)
        assert list(plain._ready) == [handle]  # type: ignore[attr-defined]  # that is the question
        assert handle._context is not None  # type: ignore[attr-defined]  # that is the question
        assert plain._stopping is False  # type: ignore[attr-defined]  # that is the question
        assert callable(plain._run_once)  # type: ignore[attr-defined]  # that is the question
        handle.cancel()
    finally:
        plain.close()
    assert asyncio.BaseEventLoop._run_once is not SimulationLoop._run_once  # type: ignore[attr-defined]  # that is the question


def test_time_jumps_and_nobody_waits(loop: SimulationLoop) -> None:
    loop.run_until_complete(asyncio.sleep(86_400))
    assert loop.time() == 86_400


def test_order_is_drawn_and_differs_between_seeds() -> None:
    assert len({_order(seed) for seed in range(20)}) > 5
    assert _order(3) == _order(3)


def test_nothing_left_to_run_is_a_deadlock(loop: SimulationLoop) -> None:
    with pytest.raises(Deadlock):
        loop.run_until_complete(loop.create_future())


def test_a_killed_process_runs_no_finally_block(loop: SimulationLoop) -> None:
    heard: list[str] = []
    process = Process("victim")

    async def work() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            heard.append("finally")

    async def main() -> None:
        await asyncio.sleep(0.5)
        loop.kill(process)
        await asyncio.sleep(5)
        assert heard == []

    _spawn(loop, process, work())
    loop.run_until_complete(main())


def test_what_a_process_starts_dies_with_it(loop: SimulationLoop) -> None:
    heard: list[str] = []
    process = Process("victim")

    async def child() -> None:
        await asyncio.sleep(1)
        heard.append("child")

    async def work() -> None:
        asyncio.get_running_loop().create_task(child())
        asyncio.get_running_loop().call_later(1, heard.append, "timer")

    async def main() -> None:
        await asyncio.sleep(0.5)
        loop.kill(process)
        await asyncio.sleep(5)

    _spawn(loop, process, work())
    loop.run_until_complete(main())
    assert heard == []


def test_a_paused_process_goes_on_where_it_was(loop: SimulationLoop) -> None:
    heard: list[float] = []
    process = Process("sleeper")

    async def work() -> None:
        await asyncio.sleep(1)
        heard.append(loop.time())

    async def main() -> None:
        await asyncio.sleep(0.5)
        loop.pause(process)
        await asyncio.sleep(3)
        assert heard == []
        loop.resume(process)
        await asyncio.sleep(1)

    _spawn(loop, process, work())
    loop.run_until_complete(main())
    assert heard == [3.5]


def test_clocks_of_processes_differ() -> None:
    fast = Process("fast", clock_offset=7, clock_rate=1.5)
    assert (fast.monotonic(0), fast.monotonic(1_000)) == (7, 1_507)


def test_threads_are_refused(loop: SimulationLoop) -> None:
    with pytest.raises(RuntimeError, match="threads"):
        loop.run_until_complete(_in_thread())


async def _in_thread() -> None:
    await asyncio.to_thread(print)


def _order(seed: int) -> tuple[int, ...]:
    loop = SimulationLoop(Random(seed))
    order: list[int] = []
    for number in range(5):
        loop.call_soon(order.append, number)
    loop.run_until_complete(asyncio.sleep(1))
    loop.close()
    return tuple(order)

"""SimulationLoop: virtual time, seeded order, killed and paused processes, and the private names it uses."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from random import Random
from typing import Any

import pytest

from duetime.testing.processes import Process
from duetime.testing.simulation.loop import Deadlock, SimulationLoop


@pytest.fixture
def loop() -> Iterator[SimulationLoop]:
    made = SimulationLoop(Random(1))
    yield made
    made.close()


def _spawn(loop: SimulationLoop, process: Process, work: Coroutine[Any, Any, Any]) -> None:
    process.context.run(loop.create_task, work)


def test_private_members_used_of_asyncio_exist() -> None:
    """If a new Python renames one of them, this test fails; otherwise callbacks would silently run in
    order."""
    standard = asyncio.new_event_loop()
    try:
        handle = standard.call_soon(print)
        assert list(standard._ready) == [handle]  # type: ignore[attr-defined]  # exists at run time
        assert handle._context is not None  # type: ignore[attr-defined]  # exists at run time
        assert standard._stopping is False  # type: ignore[attr-defined]  # exists at run time
        assert callable(standard._run_once)  # type: ignore[attr-defined]  # exists at run time
        handle.cancel()
    finally:
        standard.close()
    assert asyncio.BaseEventLoop._run_once is not SimulationLoop._run_once  # type: ignore[attr-defined]  # exists at run time


def test_sleep_takes_virtual_time_only(loop: SimulationLoop) -> None:
    loop.run_until_complete(asyncio.sleep(86_400))
    assert loop.time() == 86_400


def test_seed_decides_the_order_of_callbacks() -> None:
    assert len({_order(seed) for seed in range(20)}) > 5
    assert _order(3) == _order(3)


def test_loop_without_callbacks_raises_deadlock(loop: SimulationLoop) -> None:
    with pytest.raises(Deadlock):
        loop.run_until_complete(loop.create_future())


def test_killed_process_runs_no_finally_block(loop: SimulationLoop) -> None:
    recorded: list[str] = []
    process = Process("victim")

    async def work() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            recorded.append("finally")

    async def main() -> None:
        await asyncio.sleep(0.5)
        loop.kill(process)
        await asyncio.sleep(5)
        assert recorded == []

    _spawn(loop, process, work())
    loop.run_until_complete(main())


def test_children_of_a_killed_process_die(loop: SimulationLoop) -> None:
    recorded: list[str] = []
    process = Process("victim")

    async def child() -> None:
        await asyncio.sleep(1)
        recorded.append("child")

    async def work() -> None:
        asyncio.get_running_loop().create_task(child())
        asyncio.get_running_loop().call_later(1, recorded.append, "timer")

    async def main() -> None:
        await asyncio.sleep(0.5)
        loop.kill(process)
        await asyncio.sleep(5)

    _spawn(loop, process, work())
    loop.run_until_complete(main())
    assert recorded == []


def test_paused_process_continues_after_resume(loop: SimulationLoop) -> None:
    recorded: list[float] = []
    process = Process("sleeper")

    async def work() -> None:
        await asyncio.sleep(1)
        recorded.append(loop.time())

    async def main() -> None:
        await asyncio.sleep(0.5)
        loop.pause(process)
        await asyncio.sleep(3)
        assert recorded == []
        loop.resume(process)
        await asyncio.sleep(1)

    _spawn(loop, process, work())
    loop.run_until_complete(main())
    assert recorded == [3.5]


def test_processes_have_their_own_clocks() -> None:
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

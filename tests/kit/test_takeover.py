"""The loop under virtual time: what it relies on in asyncio, what it gives back, and that the world outside is waited for."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from duetime.errors import ConfigError
from duetime.model.instant import SECOND, Micros
from duetime.testing.kit.takeover import Stuck, Takeover
from duetime.testing.simulation.loop import Process

HOUR = 3_600 * SECOND


class Nothing:
    """A horizon that knows of nothing: every timer is lived through."""

    def idle(self, timer: asyncio.TimerHandle) -> bool:
        return False

    def next(self) -> tuple[Micros | None, bool]:
        return None, True


def make(patience: float = 5.0) -> Takeover:
    return Takeover(0, Nothing(), patience)


def test_what_is_used_of_asyncio_is_there() -> None:
    """Private names; a Python that renames one of them must fail here and not in somebody's tests."""
    loop: Any = asyncio.SelectorEventLoop()
    timer = loop.call_later(60, print, "never")
    assert timer in loop._scheduled
    assert timer._args == ("never",)
    assert timer._callback is print
    assert timer._context is not None
    assert timer._when == timer.when()
    assert loop._selector.select
    assert loop._clock_resolution > 0
    ready = loop.call_soon(print, "never")
    assert ready in loop._ready
    task = loop.create_task(asyncio.sleep(60))
    assert task._fut_waiter is None
    ready.cancel()
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()


async def test_sleeping_costs_nothing_and_moves_time() -> None:
    takeover, began = make(), time.monotonic()
    takeover.begin(asyncio.get_running_loop())
    try:
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(86_400), asyncio.sleep(0.25))
        assert takeover.micros() == 24 * HOUR
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        assert takeover.micros() == 24 * HOUR + 60 * SECOND
    finally:
        takeover.end()
    assert time.monotonic() - began < 60


async def test_ten_years_ahead_a_timer_still_rings() -> None:
    """Floats are coarse out there."""
    takeover = make()
    takeover.begin(asyncio.get_running_loop())
    try:
        await asyncio.sleep(3_650 * 86_400)
        for _ in range(100):
            await asyncio.sleep(0.000_001)
        assert takeover.micros() == 3_650 * 24 * HOUR + 100
    finally:
        takeover.end()


async def test_the_loop_is_given_back_as_it_was() -> None:
    loop = asyncio.get_running_loop()
    before, factory, selector = dict(vars(loop)), loop.get_task_factory(), loop._selector  # type: ignore[attr-defined]
    timer = loop.call_later(30, print, "never")
    takeover = make()
    takeover.begin(loop)
    await asyncio.sleep(10)
    takeover.end()
    assert vars(loop).keys() == before.keys()
    assert loop.get_task_factory() is factory
    assert loop._selector is selector  # type: ignore[attr-defined]
    assert timer.when() - loop.time() == pytest.approx(20, abs=1)
    timer.cancel()
    began = time.monotonic()
    await asyncio.sleep(0.05)
    assert time.monotonic() - began >= 0.04


async def test_time_goes_on_where_it_ended() -> None:
    takeover = make()
    for _ in range(3):
        takeover.begin(asyncio.get_running_loop())
        await asyncio.sleep(100)
        takeover.end()
    assert takeover.micros() == 300 * SECOND


async def test_everything_of_an_instant_happens_before_it_is_left() -> None:
    takeover, seen = make(), []

    async def late() -> None:
        await asyncio.sleep(10)
        for step in range(20):
            await asyncio.sleep(0)
            seen.append(step)

    takeover.begin(asyncio.get_running_loop())
    try:
        task = asyncio.create_task(late())
        assert await takeover.until(lambda: False, 10 * SECOND) is False
        assert seen == list(range(20))
        assert takeover.micros() == 10 * SECOND
        await task
    finally:
        takeover.end()


async def test_waiting_for_what_cannot_happen_is_told() -> None:
    takeover = make()
    takeover.begin(asyncio.get_running_loop())
    try:
        with pytest.raises(Stuck, match="nothing more can happen"):
            await takeover.until(lambda: False)
    finally:
        takeover.end()


async def test_nobody_waits_for_the_dead() -> None:
    takeover, process = make(), Process("node")
    takeover.begin(asyncio.get_running_loop())
    try:
        process.context.run(asyncio.get_running_loop().create_task, asyncio.sleep(3600))
        await asyncio.sleep(60)
        takeover.processes.kill(process)
        with pytest.raises(Stuck):
            await takeover.until(lambda: False)
        assert takeover.micros() == 60 * SECOND
    finally:
        takeover.end()


async def test_threads_are_not_used_and_see_no_loop() -> None:
    """A plain function runs on the test's own thread, and may start a loop of its own there, as in a thread."""
    takeover = make()
    takeover.begin(asyncio.get_running_loop())
    try:

        def plain() -> tuple[int, int]:
            return threading.get_ident(), asyncio.run(asyncio.sleep(0, 7))

        assert await asyncio.to_thread(plain) == (threading.get_ident(), 7)
        assert asyncio.current_task() is not None
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
    finally:
        takeover.end()


async def test_a_socket_is_waited_for_before_time_jumps() -> None:
    """The answer takes 50 ms, and there is a timer an hour ahead: without patience that would ring first."""
    takeover = make()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    answer = threading.Timer(0.05, theirs.send, [b"pong"])
    loop = asyncio.get_running_loop()
    takeover.begin(loop)
    try:
        answer.start()
        async with asyncio.timeout(3600):
            assert await loop.sock_recv(ours, 10) == b"pong"
        assert takeover.micros() == 0
    finally:
        takeover.end()
        answer.join()
        ours.close()
        theirs.close()


async def test_a_socket_that_stays_silent_is_not_waited_for_for_ever() -> None:
    takeover = make(patience=0.02)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    takeover.begin(loop)
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await loop.sock_recv(ours, 10)
        assert takeover.micros() == HOUR
    finally:
        takeover.end()
        ours.close()
        theirs.close()


async def test_who_waited_for_the_world_before_holds_nothing_up() -> None:
    """A server or a browser that all tests of a loop share: whatever they may hear one day, time goes on, and Stuck is told."""
    takeover = make(patience=3600)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    shared = asyncio.create_task(loop.sock_recv(ours, 10))
    await asyncio.sleep(0)
    takeover.begin(loop)
    try:
        await asyncio.sleep(3600)
        assert takeover.micros() == HOUR
        with pytest.raises(Stuck):
            await takeover.until(lambda: False)
    finally:
        takeover.end()
        theirs.send(b"late")
        assert await shared == b"late"
        ours.close()
        theirs.close()


def test_a_foreign_loop_is_refused() -> None:
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    try:
        with pytest.raises(ConfigError, match=r"uvloop.*testing\.run"):
            make().begin(loop)
    finally:
        loop.close()

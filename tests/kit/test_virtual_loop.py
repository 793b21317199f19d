"""VirtualLoop and VirtualClock: virtual time on new and on adopted loops, real time afterwards, and grace for
real I/O."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from duetime.errors import ConfigError, Conflict
from duetime.model.instant import SECOND, Micros
from duetime.testing.kit.virtual_clock import Stuck, VirtualClock
from duetime.testing.kit.virtual_loop import VirtualLoop
from duetime.testing.processes import Process

HOUR = 3_600 * SECOND


class NoEngine:
    """A NextEvent without an engine: no timer is skipped."""

    def is_polling(self, timer: asyncio.TimerHandle) -> bool:
        return False

    def next(self) -> tuple[Micros | None, bool]:
        return None, True


@contextmanager
def virtual_clock(io_grace: float = 5.0) -> Iterator[VirtualClock]:
    """A clock at 0, attached to the running loop."""
    clock = VirtualClock(0, NoEngine(), io_grace)
    clock.attach(asyncio.get_running_loop())
    try:
        yield clock
    finally:
        clock.detach()


@contextmanager
def socket_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def test_private_members_used_of_asyncio_exist() -> None:
    """If a new Python renames one of them, this test fails, and not the tests of a user."""
    loop: Any = asyncio.SelectorEventLoop()
    timer = loop.call_later(60, print, "never")
    assert timer in loop._scheduled
    assert timer._args == ("never",)
    assert timer._callback is print
    assert timer._context is not None
    assert loop._selector.select
    assert callable(loop._run_once)
    assert callable(loop._process_events)
    assert loop._stopping is False
    ready = loop.call_soon(print, "never")
    assert ready in loop._ready
    task = loop.create_task(asyncio.sleep(60))
    assert task._fut_waiter is None
    ready.cancel()
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()


async def test_sleep_takes_virtual_time_only() -> None:
    began = time.monotonic()
    with virtual_clock() as clock:
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(86_400), asyncio.sleep(0.25))
        assert clock.micros() == 24 * HOUR
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        assert clock.micros() == 24 * HOUR + 60 * SECOND
    assert time.monotonic() - began < 60


def test_new_virtual_loop_needs_no_adoption() -> None:
    async def sleep_an_hour() -> Micros:
        with virtual_clock() as clock:
            await asyncio.sleep(3600)
            return clock.micros()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert type(runner.get_loop()) is VirtualLoop
        assert runner.run(sleep_an_hour()) == HOUR


def test_loop_of_a_subclass_keeps_its_own_methods() -> None:
    class CustomLoop(asyncio.SelectorEventLoop):
        def custom(self) -> str:
            return "custom"

    async def sleep_an_hour() -> Micros:
        with virtual_clock() as clock:
            await asyncio.sleep(3600)
            return clock.micros()

    with asyncio.Runner(loop_factory=CustomLoop) as runner:
        assert runner.run(sleep_an_hour()) == HOUR
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        assert isinstance(loop, CustomLoop)
        assert loop.custom() == "custom"


async def test_timers_ten_years_ahead_are_exact() -> None:
    """Floats are coarse at that distance."""
    with virtual_clock() as clock:
        await asyncio.sleep(3_650 * 86_400)
        for _ in range(100):
            await asyncio.sleep(0.000_001)
        assert clock.micros() == 3_650 * 24 * HOUR + 100


async def test_timer_set_before_virtual_time_fires_in_it() -> None:
    loop, fired = asyncio.get_running_loop(), asyncio.Event()
    loop.call_later(30.000_000_3, fired.set)
    with virtual_clock() as clock:
        await fired.wait()
        assert 29 * SECOND < clock.micros() <= 31 * SECOND


async def test_detached_loop_runs_in_real_time_and_timers_keep_their_distance() -> None:
    loop = asyncio.get_running_loop()
    attributes = vars(loop).copy()
    timer = loop.call_later(30, print, "never")
    with virtual_clock():
        await asyncio.sleep(10)
    for name in ("_selector", "_clock_resolution", "_task_factory", "_default_executor"):
        assert vars(loop)[name] is attributes[name]
    assert timer.when() - loop.time() == pytest.approx(20, abs=1)
    timer.cancel()
    began = time.monotonic()
    await asyncio.sleep(0.05)
    assert time.monotonic() - began >= 0.04
    assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()


async def test_virtual_time_continues_where_it_was_detached() -> None:
    clock = VirtualClock(0, NoEngine(), 5.0)
    for _ in range(3):
        clock.attach(asyncio.get_running_loop())
        await asyncio.sleep(100)
        clock.detach()
    assert clock.micros() == 300 * SECOND


async def test_second_clock_on_one_loop_is_refused() -> None:
    with virtual_clock(), pytest.raises(Conflict, match="one app at a time"), virtual_clock():
        raise AssertionError("attached twice")


async def test_deadline_comes_after_everything_of_its_instant() -> None:
    steps = []

    async def late() -> None:
        await asyncio.sleep(10)
        for step in range(20):
            await asyncio.sleep(0)
            steps.append(step)

    with virtual_clock() as clock:
        task = asyncio.create_task(late())
        assert await clock.until(lambda: False, 10 * SECOND) is False
        assert steps == list(range(20))
        assert clock.micros() == 10 * SECOND
        await task


async def test_wait_for_something_impossible_raises_stuck() -> None:
    with virtual_clock() as clock, pytest.raises(Stuck, match="nothing more can happen"):
        await clock.until(lambda: False)


async def test_timers_of_a_killed_process_do_not_move_time() -> None:
    process = Process("node")
    with virtual_clock() as clock:
        process.context.run(asyncio.get_running_loop().create_task, asyncio.sleep(3600))
        await asyncio.sleep(60)
        clock.loop.kill(process)
        with pytest.raises(Stuck):
            await clock.until(lambda: False)
        assert clock.micros() == 60 * SECOND


async def test_wait_of_a_killed_process_does_not_hang_the_loop() -> None:
    process = Process("node")
    with virtual_clock() as clock:
        process.context.run(asyncio.get_running_loop().create_task, clock.until(lambda: True, 60 * SECOND))
        await asyncio.sleep(0)
        clock.loop.kill(process)
        await asyncio.sleep(3600)
        assert clock.micros() == HOUR


async def test_executor_calls_run_on_the_same_thread_without_a_running_loop() -> None:
    """A sync function may start a loop of its own, as it could in a thread."""
    with virtual_clock():

        def sync_function() -> tuple[int, int]:
            return threading.get_ident(), asyncio.run(asyncio.sleep(0, 7))

        assert await asyncio.to_thread(sync_function) == (threading.get_ident(), 7)
        assert asyncio.current_task() is not None
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)


async def test_socket_may_answer_before_time_jumps() -> None:
    """The answer takes 50 ms, and a timer is an hour ahead: without the grace that timer would fire first."""
    loop = asyncio.get_running_loop()
    with virtual_clock() as clock, socket_pair() as (ours, theirs):
        answer = threading.Timer(0.05, theirs.send, [b"pong"])
        answer.start()
        async with asyncio.timeout(3600):
            assert await loop.sock_recv(ours, 10) == b"pong"
        assert clock.micros() == 0
        answer.join()


async def test_time_jumps_when_a_socket_stays_silent() -> None:
    loop = asyncio.get_running_loop()
    with virtual_clock(io_grace=0.02) as clock, socket_pair() as (ours, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await loop.sock_recv(ours, 10)
        assert clock.micros() == HOUR


async def test_tasks_older_than_the_clock_get_no_grace() -> None:
    """A server or a browser that all tests of a loop share must not hold up time, nor hide that the test is
    stuck."""
    loop = asyncio.get_running_loop()
    with socket_pair() as (ours, theirs):
        shared = asyncio.create_task(loop.sock_recv(ours, 10))
        await asyncio.sleep(0)
        with virtual_clock(io_grace=3600) as clock:
            await asyncio.sleep(3600)
            assert clock.micros() == HOUR
            with pytest.raises(Stuck):
                await clock.until(lambda: False)
        theirs.send(b"late")
        assert await shared == b"late"


def test_loop_of_another_library_is_refused() -> None:
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    try:
        with pytest.raises(ConfigError, match=r"uvloop.*testing\.run"):
            VirtualLoop.adopt(loop)
    finally:
        loop.close()

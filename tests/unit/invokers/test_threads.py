"""Plain functions in threads: asked, then interrupted, and left behind when they do not listen."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from duetime.invoker import Context
from duetime.invokers.threads import Interrupted, Threads
from tests.app.waiting import eventually, soon
from tests.unit.invokers.attempts import context, handler


@pytest.fixture
def threads() -> Iterator[Threads]:
    """They have all the time they need to hear of an interruption."""
    pool = Threads(stop_timeout=0.05, interrupt_timeout=60.0)
    yield pool
    pool.close()


class Stage:
    """Lets a test wait for a function in a thread, and hold it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.begun = asyncio.Event()
        self.release = threading.Event()
        self.seen: list[Any] = []

    def begin(self) -> None:
        self._loop.call_soon_threadsafe(self.begun.set)


async def cancelled(work: asyncio.Task[Any]) -> None:
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


def _raise(problem: BaseException) -> None:
    raise problem


async def test_results_and_errors_come_back(threads: Threads) -> None:
    assert await threads.run(lambda: 3) == 3
    for problem in (ValueError("no"), SystemExit(2), KeyboardInterrupt(), Interrupted()):
        with pytest.raises(type(problem)):
            await threads.run(partial(_raise, problem))


@pytest.mark.parametrize("problem", [StopIteration(1), GeneratorExit()])
async def test_exception_that_a_future_cannot_carry_becomes_an_error(
    threads: Threads, problem: BaseException
) -> None:
    with pytest.raises(RuntimeError, match="the task raised"):
        await threads.run(partial(_raise, problem))


async def test_context_variables_come_along(threads: Threads) -> None:
    variable: ContextVar[int] = ContextVar("variable")
    variable.set(5)
    assert await threads.run(variable.get) == 5


async def test_threads_are_used_again_and_more_are_hired_when_all_are_busy(threads: Threads) -> None:
    names = {await threads.run(lambda: threading.current_thread().name) for _ in range(5)}
    assert len(names) == 1
    together = threading.Barrier(4)
    await asyncio.gather(*(threads.run(together.wait) for _ in range(4)))


async def test_a_function_that_looks_ends_by_itself() -> None:
    """It is asked first: only one that does not look is interrupted."""
    stage = Stage()

    def work(ctx: Context) -> None:
        stage.begin()
        while not ctx.stop_requested:
            time.sleep(0.001)
        stage.seen.append("ended by itself")

    running = asyncio.ensure_future(
        handler(work, threads=Threads(stop_timeout=60.0)).invoke(context(), b"{}")
    )
    await soon(stage.begun)
    await cancelled(running)
    assert stage.seen == ["ended by itself"]


async def test_a_function_that_does_not_look_is_interrupted_before_the_slot_is_free(threads: Threads) -> None:
    stage = Stage()

    def work() -> None:
        stage.begin()
        try:
            while True:
                time.sleep(0.001)
        except Exception:
            stage.seen.append("swallowed")
        finally:
            stage.seen.append("cleaned up")

    running = asyncio.ensure_future(threads.run(work))
    await soon(stage.begun)
    await cancelled(running)
    assert stage.seen == ["cleaned up"]
    assert threads.hung == 0


async def test_a_thread_that_was_interrupted_is_not_used_again(threads: Threads) -> None:
    """The interruption may come late, and would then hit the next job."""
    stage = Stage()
    names: list[str] = []

    def work() -> None:
        names.append(threading.current_thread().name)
        stage.begin()
        while True:
            time.sleep(0.001)

    running = asyncio.ensure_future(threads.run(work))
    await soon(stage.begun)
    await cancelled(running)
    assert await threads.run(lambda: threading.current_thread().name) not in names


async def test_a_thread_that_hangs_is_counted_named_and_replaced(caplog: pytest.LogCaptureFixture) -> None:
    stage, threads = Stage(), Threads(stop_timeout=0.05, interrupt_timeout=0.05)

    def work() -> None:
        stage.begin()
        stage.release.wait(120)  # in C: no exception reaches it

    with caplog.at_level(logging.INFO, "duetime.task"):
        running = asyncio.ensure_future(threads.run(work, what="task invoice.send of job 7"))
        await soon(stage.begun)
        await cancelled(running)
        assert threads.hung == 1
        assert "duetime-task-1 ignores the interruption of task invoice.send of job 7" in caplog.text
        assert await threads.run(lambda: threading.current_thread().name) == "duetime-task-2"

        async def ended() -> bool:
            return threads.hung == 0

        stage.release.set()
        await eventually(ended)
    assert "abandoned thread duetime-task-1 has ended" in caplog.text
    threads.close()


async def test_a_second_cancellation_does_not_wait() -> None:
    stage = Stage()

    def work() -> None:
        stage.begin()
        stage.release.wait(120)

    patient = Threads(stop_timeout=600.0, interrupt_timeout=600.0)
    running = asyncio.ensure_future(patient.run(work))
    await soon(stage.begun)
    running.cancel()
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await cancelled(running)
    assert patient.hung == 1
    stage.release.set()


async def test_interrupting_at_any_moment_loses_no_call() -> None:
    """However the interruption and the end of the function meet: the caller is answered, and the next call is
    not hit by it."""
    threads = Threads(stop_timeout=0.0, interrupt_timeout=60.0)
    for steps in range(300):

        def work(steps: int = steps) -> int:
            return sum(range(steps * 20))

        running = asyncio.ensure_future(threads.run(work))
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        assert await threads.run(lambda: "well") == "well"
    assert threads.hung == 0
    threads.close()


SCRIPT = """
import asyncio, threading, time
from duetime.invokers.threads import Threads

async def main():
    begun = threading.Event()
    def hang():
        begun.set()
        threading.Event().wait()
    running = asyncio.ensure_future(Threads(stop_timeout=0.01, interrupt_timeout=0.01).run(hang))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])

asyncio.run(main())
print("over")
"""


def test_a_thread_that_hangs_does_not_keep_the_process_alive() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr

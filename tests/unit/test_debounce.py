"""A debounced call is made once, for any number of requests, on any loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from duetime.model.instant import SECOND, Micros
from duetime.observers.event_log import Debouncer

PATIENCE = 60.0
Factory = Callable[[], asyncio.AbstractEventLoop]


class Work:
    def __init__(self, *again: Micros | None) -> None:
        self._again = list(again)
        self.done = 0
        self.over = asyncio.Event()

    async def __call__(self) -> Micros | None:
        self.done += 1
        self.over.set()
        return self._again.pop(0) if self._again else None


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> asyncio.Runner:
    """Handles of uvloop do not tell when they ring if that is at once."""
    factory: Factory = request.param
    return asyncio.Runner(loop_factory=factory)


def test_asked_again_before_it_began_it_is_done_once(runner: asyncio.Runner) -> None:
    async def ask() -> int:
        work = Work()
        debouncer = Debouncer(work)
        for within in (3_600 * SECOND, 0, 0, 3_600 * SECOND):
            debouncer.ask(within)
        await asyncio.wait_for(work.over.wait(), PATIENCE)
        await debouncer.close()
        return work.done

    with runner:
        assert runner.run(ask()) == 1


def test_work_runs_again_after_the_delay_it_returns(runner: asyncio.Runner) -> None:
    async def ask() -> int:
        work = Work(0, 1, None)
        debouncer = Debouncer(work)
        debouncer.ask(0)
        while work.done < 3:
            work.over.clear()
            await asyncio.wait_for(work.over.wait(), PATIENCE)
        await debouncer.close()
        return work.done

    with runner:
        assert runner.run(ask()) == 3


def test_close_drops_a_run_that_has_not_started(runner: asyncio.Runner) -> None:
    async def ask() -> int:
        work = Work()
        debouncer = Debouncer(work)
        debouncer.ask(0)
        await debouncer.close()
        await asyncio.sleep(0.01)
        return work.done

    with runner:
        assert runner.run(ask()) == 0

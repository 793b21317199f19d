"""A blocked event loop is noticed from outside, and the job that blocks it is named with its stack (G1)."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from duetime.engine.node.heartbeat import REPORT_AFTER, Watchdog
from duetime.engine.node.timer import NodeClock
from duetime.engine.run.perform import Slot, perform
from duetime.invoker import Context, Policies
from duetime.model.events import Event, LoopBlocked
from duetime.model.instant import Micros
from duetime.model.job import Delivery
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.observer import Observers
from duetime.observers.log import log_event
from tests.unit.engine.fake_store import FakeStore, job, make_writer


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.at: Micros = 0

    def __call__(self) -> Micros:
        return self.at


def blocks_the_loop(watchdog: Watchdog, hand: Hand, silences: list[Micros]) -> None:
    """Blocks its caller, while the watchdog has its turns on another thread."""

    def turns() -> None:
        asyncio.run(_turns())

    async def _turns() -> None:
        await watchdog.run_once()
        for silence in silences:
            hand.at += silence
            await watchdog.run_once()

    other = threading.Thread(target=turns)
    other.start()
    other.join()


class Blocking:
    policies = Policies(Retry(), None, Delivery.AT_LEAST_ONCE)
    limit: Limit | None = None

    def __init__(self, watchdog: Watchdog, hand: Hand, silences: list[Micros]) -> None:
        self._call = (watchdog, hand, silences)

    async def invoke(self, context: Context, payload: bytes) -> Any:
        blocks_the_loop(*self._call)


async def told(silences: list[Micros]) -> list[Event]:
    events: list[Event] = []
    hand = Hand()
    clock = NodeClock(monotonic=hand)
    watchdog = Watchdog(clock, Observers([events.append]))
    await perform(
        job(), Slot(), Blocking(watchdog, hand, silences), clock, make_writer(FakeStore(), clock=clock)
    )
    return events


async def test_a_blocking_job_is_named_with_its_stack() -> None:
    [event] = await told([REPORT_AFTER + 1])
    assert isinstance(event, LoopBlocked)
    assert (event.target, event.job_id, event.silent) == ("task", job().id, REPORT_AFTER + 1)
    assert "in blocks_the_loop" in event.stack
    assert "in perform" not in event.stack, "the engine's own frames are of no use"


async def test_a_short_silence_is_nothing() -> None:
    assert await told([REPORT_AFTER]) == []


async def test_it_is_told_again_seldom() -> None:
    assert len(await told([REPORT_AFTER + 1] + [REPORT_AFTER] * 20)) == 2


async def test_a_loop_that_answers_is_not_blocked_and_its_lag_is_known() -> None:
    events: list[Event] = []
    hand = Hand()
    watchdog = Watchdog(NodeClock(monotonic=hand), Observers([events.append]))
    await watchdog.run_once()
    hand.at += 300_000
    assert watchdog.lag() == 300_000
    await asyncio.sleep(0)
    hand.at += 5 * REPORT_AFTER
    assert watchdog.lag() == 300_000
    await watchdog.run_once()
    assert events == []


def test_the_log_names_the_task_and_the_remedy(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "duetime"):
        log_event(LoopBlocked(2_000_000, "report.build", job().id, '  File "tasks.py", line 7, in build'))
    assert "task 'report.build'" in caplog.text
    assert "blocked this node for 2s" in caplog.text
    assert "runs in a thread" in caplog.text
    assert "line 7, in build" in caplog.text

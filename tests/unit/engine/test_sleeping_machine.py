"""A machine that sleeps (B10): its own monotonic clock stands still meanwhile, leases do not."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from duetime.clock import BOOT_CLOCK, monotonic_micros
from duetime.engine.node.timer import make_timer
from duetime.model.instant import SECOND

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a clock that goes on")
HOUR = 3_600 * SECOND


def test_the_time_asleep_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    real, before = time.clock_gettime_ns, monotonic_micros()
    # What a sleep of an hour looks like: the one clock has gone on, the other has not.
    monkeypatch.setattr(
        time, "clock_gettime_ns", lambda clock: real(clock) + HOUR * 1_000 * (clock == BOOT_CLOCK)
    )
    assert HOUR <= monotonic_micros() - before < 2 * HOUR


async def test_alarms_go_by_the_same_clock() -> None:
    rung: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    alarm = make_timer(lambda: rung.set_result(monotonic_micros()), monotonic_micros)
    at = monotonic_micros() + SECOND // 50
    alarm.set(at)
    async with asyncio.timeout(60):
        assert await rung >= at
    alarm.cancel()

"""Time. The store's clock decides what is due. A node follows it on its own monotonic clock, so a step of its
wall clock has no effect."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable
from random import SystemRandom
from typing import Protocol

from duetime.model.instant import SECOND, Micros

BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux
SAMPLES = 16
DRIFT = 200  # microseconds per second by which the two clocks may drift apart
_system = SystemRandom()


def wall_micros() -> Micros:
    """This machine's wall clock: the clock of stores on this machine."""
    return time.time_ns() // 1_000


wall_nanos = time.time_ns  # of spans


def monotonic_micros() -> Micros:
    """Monotonic, and includes suspend (CLOCK_BOOTTIME), because leases expire during suspend."""
    return time.monotonic_ns() // 1_000 if BOOT_CLOCK is None else time.clock_gettime_ns(BOOT_CLOCK) // 1_000


async def pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


def noise() -> float:
    """A random number from [0, 1) that spreads retries and reconnects. Not from the generator of the program,
    whose seed may be the same on all machines."""
    return _system.random()


def load_per_core() -> float:
    """The load average of the last minute, divided by the number of cores; 0 where the system has none."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0


class Alarm(Protocol):
    """Calls back at an instant of the clock that made it. Setting it again replaces the instant."""

    def set(self, at: Micros) -> None: ...

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The store's time as this process knows it: never ahead of the store, so that no job starts early."""

    def now(self) -> Micros: ...

    def monotonic(self) -> Micros:
        """Measures durations on this machine, independently of the store."""
        ...

    async def sleep(self, micros: Micros) -> None: ...

    def noise(self) -> float: ...

    def load(self) -> float:
        """How busy this machine is. Above 1, processes wait for a core."""
        ...

    def alarm(self, ring: Callable[[], None]) -> Alarm: ...

    def skew(self) -> Micros:
        """This machine's wall clock minus the store's; 0 where time is not real."""
        ...

    async def follow(self, read_store: Callable[[], Awaitable[Micros]]) -> None:
        """Take one sample of the store's clock."""
        ...

    @property
    def sample_age(self) -> Micros:
        """Time since the last sample; very large before the first."""
        ...


class Follower:
    """The arithmetic of following a remote clock.

    A reply says "it was t at the store" and arrives later, so the estimate is behind the store by the travel
    time of the reply: late, never early. The largest estimate of the last samples is the best one. Older
    samples count less because of drift.
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[Micros, Micros]] = deque(maxlen=SAMPLES)
        self._offset: Micros = 0

    def sample(self, store_now: Micros, arrived: Micros) -> None:
        offset = store_now - arrived
        if self._samples and offset < self._offset - SECOND:
            self._samples.clear()  # the store's clock was set back, so older samples are wrong
        self._samples.append((arrived, offset))
        self._offset = max(known - (arrived - at) * DRIFT // SECOND for at, known in self._samples)

    def at(self, monotonic: Micros) -> Micros:
        return monotonic + self._offset

    @property
    def latest(self) -> Micros | None:
        return self._samples[-1][0] if self._samples else None

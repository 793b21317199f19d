"""Exact timers: on Linux a timerfd that the event loop reads (tens of microseconds late), elsewhere the event
loop's own timer."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Awaitable, Callable

from duetime.clock import (
    BOOT_CLOCK,
    Alarm,
    Follower,
    load_per_core,
    monotonic_micros,
    noise,
    pause,
    wall_micros,
)
from duetime.model.instant import SECOND, Micros

_CLOCK = 1 if BOOT_CLOCK is None else BOOT_CLOCK  # that of `monotonic_micros`
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_ABSOLUTE = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class TimerfdTimer:
    """Instants are monotonic microseconds. Event loops round their timers to milliseconds and may fire
    early; the kernel does not."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.timerfd_create(_CLOCK, _NONBLOCK_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._loop.add_reader(self._fd, self._read)

    def set(self, at: Micros) -> None:
        seconds, micros = divmod(max(at, 1), SECOND)
        self._arm(_Timespec(seconds, micros * 1_000))

    def cancel(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _arm(self, value: _Timespec) -> None:
        if self._fd >= 0:
            self._libc.timerfd_settime(
                self._fd, _ABSOLUTE, ctypes.byref(_Itimerspec(_Timespec(0, 0), value)), None
            )

    def _read(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        self._ring()


class LoopTimer:
    """The event loop's own timer. It may fire early: the callback checks the clock."""

    def __init__(self, ring: Callable[[], None], monotonic: Callable[[], Micros]) -> None:
        self._ring = ring
        self._monotonic = monotonic
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: Micros) -> None:
        self.cancel()
        self._timer = self._loop.call_later(max(0, at - self._monotonic()) / SECOND, self._ring)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def make_timer(ring: Callable[[], None], monotonic: Callable[[], Micros]) -> TimerfdTimer | LoopTimer:
    return TimerfdTimer(ring) if sys.platform == "linux" else LoopTimer(ring, monotonic)


# The clock of a running node: the store's time, carried on this machine's monotonic clock.


NEVER_SAMPLED = 1 << 60

AlarmMaker = Callable[[Callable[[], None], Callable[[], Micros]], Alarm]


class NodeClock:
    """Follows a store's clock. The simulation passes its own monotonic clock and alarms."""

    def __init__(
        self,
        monotonic: Callable[[], Micros] = monotonic_micros,
        alarms: AlarmMaker = make_timer,
        noise: Callable[[], float] = noise,
        load: Callable[[], float] = load_per_core,
    ) -> None:
        self.monotonic = monotonic
        self.noise = noise
        self.load = load
        self._alarms = alarms
        self._follower = Follower()

    def now(self) -> Micros:
        return self._follower.at(self.monotonic())

    async def sleep(self, micros: Micros) -> None:
        await pause(micros / SECOND)

    def alarm(self, ring: Callable[[], None]) -> Alarm:
        return _StoreTimeAlarm(self, self._alarms(ring, self.monotonic))

    def skew(self) -> Micros:
        real = self.monotonic is monotonic_micros and self._follower.latest is not None
        return wall_micros() - self.now() if real else 0

    async def follow(self, read_store: Callable[[], Awaitable[Micros]]) -> None:
        self._follower.sample(await read_store(), self.monotonic())

    @property
    def sample_age(self) -> Micros:
        latest = self._follower.latest
        return NEVER_SAMPLED if latest is None else self.monotonic() - latest

    def to_monotonic(self, instant: Micros) -> Micros:
        return instant - self._follower.at(0)


class _StoreTimeAlarm:
    """Takes instants of the store's clock and sets a monotonic alarm for them."""

    def __init__(self, clock: NodeClock, alarm: Alarm) -> None:
        self._clock = clock
        self._alarm = alarm

    def set(self, at: Micros) -> None:
        self._alarm.set(self._clock.to_monotonic(at))

    def cancel(self) -> None:
        self._alarm.cancel()

"""Exact timers: on Linux a timerfd that the event loop reads (tens of microseconds late), elsewhere the event
loop's own timer."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable

from duetime.clock import BOOT_CLOCK
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

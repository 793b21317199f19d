"""The watchdog: on the thread of the heartbeat it checks that the node's event loop responds, and reports the
task that blocks it.

An async task that computes or waits without `await` blocks everything else on its node. The heartbeat runs on
its own thread, so the node keeps its lease and its jobs; the watchdog names the cause."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from types import FrameType

from duetime.clock import Clock
from duetime.engine.run.perform import perform
from duetime.model.events import LoopBlocked
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.observer import Observers

CHECK_INTERVAL = SECOND // 4
REPORT_AFTER = SECOND
REPORT_FACTOR = 10  # each further report of the same block comes after so many times the last delay
MAX_FRAMES = 12


class Watchdog:
    """A body of the heartbeat's loop. Created on the thread and event loop that it watches."""

    name = "watchdog"

    def __init__(self, clock: Clock, observers: Observers) -> None:
        self._clock = clock
        self._observers = observers
        self._watched = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._asked_at: Micros | None = None
        self._report_after = REPORT_AFTER
        self._last_lag: Micros = 0

    def lag(self) -> Micros:
        """How long the event loop takes to run a callback."""
        asked_at = self._asked_at
        return self._last_lag if asked_at is None else max(self._last_lag, self._clock.monotonic() - asked_at)

    async def run_once(self) -> Micros | None:
        if self._watched.is_closed():
            return None
        if self._asked_at is None:
            self._asked_at, self._report_after = self._clock.monotonic(), REPORT_AFTER
            self._watched.call_soon_threadsafe(self._answer)
        elif (silent := self._clock.monotonic() - self._asked_at) > self._report_after:
            self._report_after *= REPORT_FACTOR
            self._report(silent)
        return CHECK_INTERVAL

    def _answer(self) -> None:
        """Runs on the watched event loop."""
        if self._asked_at is not None:
            self._last_lag = self._clock.monotonic() - self._asked_at
            self._asked_at = None

    def _report(self, silent: Micros) -> None:
        frames = _frames(sys._current_frames().get(self._thread))
        job = next((_job_of(frame) for frame in frames if frame.f_code is perform.__code__), None)
        self._observers(
            LoopBlocked(
                silent,
                None if job is None else job.target,
                None if job is None else job.id,
                "".join(_shown(frames)).rstrip(),
            )
        )


def _frames(innermost: FrameType | None) -> list[FrameType]:
    """Outermost first."""
    frames: list[FrameType] = []
    while innermost is not None:
        frames.append(innermost)
        innermost = innermost.f_back
    return frames[::-1]


def _job_of(frame: FrameType) -> Claimed | None:
    job = frame.f_locals.get("job")
    return job if isinstance(job, Claimed) else None


def _shown(frames: list[FrameType]) -> list[str]:
    """The task's own frames: those called by the engine and the invoker."""
    inside = [
        number
        for number, frame in enumerate(frames)
        if frame.f_globals.get("__name__", "").partition(".")[0] == "duetime"
    ]
    own = frames[inside[-1] + 1 :] if inside else frames
    summary = traceback.StackSummary.extract(
        ((frame, frame.f_lineno) for frame in own or frames), lookup_lines=True
    )
    return summary.format()[-MAX_FRAMES:]

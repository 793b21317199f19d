"""The watchdog: from the heart's thread it asks the node's event loop for a sign of life, and names what blocks it.

An async task that computes or waits without `await` stops everything else of its node. The heart goes on beating, so nobody takes the
node's jobs away; this tells whose fault the silence is.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from types import FrameType

from duetime.clock import Clock
from duetime.engine.perform import perform
from duetime.model.events import LoopBlocked
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.observer import Observers

TURN = SECOND // 4
SILENT_AFTER = SECOND
TELL_AGAIN = 10  # times as long as when it was told last
MOST_FRAMES = 12


class Watchdog:
    """A part of the heart's loop. Made on the thread and event loop it is to watch."""

    name = "watchdog"

    def __init__(self, clock: Clock, observers: Observers) -> None:
        self._clock = clock
        self._observers = observers
        self._watched = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._asked_at: Micros | None = None
        self._tell_after = SILENT_AFTER
        self._last_lag: Micros = 0

    def lag(self) -> Micros:
        """How long the event loop takes to come round to what it is asked."""
        asked_at = self._asked_at
        return self._last_lag if asked_at is None else max(self._last_lag, self._clock.monotonic() - asked_at)

    async def run_once(self) -> Micros | None:
        if self._watched.is_closed():
            return None
        if self._asked_at is None:
            self._asked_at, self._tell_after = self._clock.monotonic(), SILENT_AFTER
            self._watched.call_soon_threadsafe(self._answer)
        elif (silent := self._clock.monotonic() - self._asked_at) > self._tell_after:
            self._tell_after *= TELL_AGAIN
            self._tell(silent)
        return TURN

    def _answer(self) -> None:
        """On the event loop that is watched."""
        if self._asked_at is not None:
            self._last_lag = self._clock.monotonic() - self._asked_at
            self._asked_at = None

    def _tell(self, silent: Micros) -> None:
        frames = _frames(sys._current_frames().get(self._thread))
        job = next((_job_of(frame) for frame in frames if frame.f_code is perform.__code__), None)
        self._observers(
            LoopBlocked(silent, None if job is None else job.target, None if job is None else job.id, "".join(_shown(frames)).rstrip())
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
    """The task's own frames: what lies below the engine's and the invoker's."""
    inside = [number for number, frame in enumerate(frames) if frame.f_globals.get("__name__", "").partition(".")[0] == "duetime"]
    own = frames[inside[-1] + 1 :] if inside else frames
    summary = traceback.StackSummary.extract(((frame, frame.f_lineno) for frame in own or frames), lookup_lines=True)
    return summary.format()[-MOST_FRAMES:]

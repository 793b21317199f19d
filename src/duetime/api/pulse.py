"""The event loop as seen from itself: whether it came round in time, now and a moment ago."""

from __future__ import annotations

from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros

BEAT = SECOND // 10  # how often the server beats when nothing holds it up
MOST_LAG = 2 * SECOND
LOOK_BACK = 10 * SECOND


class Pulse:
    """Beaten by the server. Where nobody has begun to, nothing is known and nothing is said."""

    def __init__(self) -> None:
        self._beaten_at: Micros | None = None
        self._late_at: Micros | None = None
        self._lag: Micros = 0

    def beat(self) -> None:
        now = monotonic_micros()
        self._notice(now)
        self._beaten_at = now

    def trouble(self) -> str | None:
        now = monotonic_micros()
        self._notice(now)  # whoever asks may have his turn before the beat that is overdue
        if self._late_at is None or now - self._late_at > LOOK_BACK:
            return None
        cause = "something here computes or waits without `await`, or the machine is overloaded"
        return f"the event loop stood still for {self._lag / SECOND:.1f} s: {cause}; ready when it has run for {LOOK_BACK // SECOND} s"

    def _notice(self, now: Micros) -> None:
        if self._beaten_at is not None and (lag := now - self._beaten_at - BEAT) > MOST_LAG:
            self._lag, self._late_at = lag, now

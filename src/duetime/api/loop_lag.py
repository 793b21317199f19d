"""The lag of the event loop, measured by the server."""

from __future__ import annotations

from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros

BEAT_INTERVAL = SECOND // 10
MAX_LAG = 2 * SECOND
RECOVERY = 10 * SECOND


class LoopLag:
    """Without a server that calls `beat`, nothing is known and nothing is reported."""

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
        self._notice(now)  # a readiness check may run before the overdue beat
        if self._late_at is None or now - self._late_at > RECOVERY:
            return None
        cause = "a task blocks the loop, or the machine is overloaded"
        remedy = f"ready again after {RECOVERY // SECOND} s without a stall"
        return f"the event loop stood still for {self._lag / SECOND:.1f} s: {cause}; {remedy}"

    def _notice(self, now: Micros) -> None:
        if self._beaten_at is not None and (lag := now - self._beaten_at - BEAT_INTERVAL) > MAX_LAG:
            self._lag, self._late_at = lag, now

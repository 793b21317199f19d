"""Back-pressure: a node whose machine or event loop is busy claims less than its slots would take."""

from __future__ import annotations

from collections.abc import Callable

from duetime.model.instant import SECOND, Micros

MAX_LAG = SECOND // 4  # an event loop that answers later than this is busy


class Backpressure:
    def __init__(self, lag: Callable[[], Micros], load: Callable[[], float], max_load: float | None) -> None:
        self._lag = lag
        self._load = load
        self._max_load = max_load

    def allow(self, room: int) -> int:
        """How much of this room to use now. A busy event loop still gets some, or one slow task would stop
        all others."""
        if room <= 0 or (self._max_load is not None and self._load() > self._max_load):
            return 0
        lag = self._lag()
        return room if lag <= MAX_LAG else max(1, room * MAX_LAG // lag)

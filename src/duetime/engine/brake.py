"""The brake: a node that is busy already, by its machine's load or by its own event loop, claims less than its slots would take."""

from __future__ import annotations

from collections.abc import Callable

from duetime.model.instant import SECOND, Micros

LATE = SECOND // 4  # an event loop that answers later than this has enough to do


class Brake:
    def __init__(self, lag: Callable[[], Micros], load: Callable[[], float], max_load: float | None) -> None:
        self._lag = lag
        self._load = load
        self._max_load = max_load

    def allow(self, room: int) -> int:
        """Of this room, how much to use now. An event loop that lags always gets some, or a slow task would stop its neighbours."""
        if room <= 0 or (self._max_load is not None and self._load() > self._max_load):
            return 0
        lag = self._lag()
        return room if lag <= LATE else max(1, room * LATE // lag)

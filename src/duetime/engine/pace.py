"""How fast this worker starts jobs, so that it claims ahead what it will start in a moment and leaves the rest to others."""

from __future__ import annotations

from duetime.model.instant import SECOND, Micros

AHEAD = SECOND // 10
MOST_AHEAD = 4_000
FEWEST = 20  # starts worth a measurement


class Pace:
    """Measured only while jobs wait: the time it takes to start one, whatever the reason (slots, processor, the task itself)."""

    def __init__(self) -> None:
        self._since: Micros | None = None
        self.starts = 0  # since the measurement began; counted by the worker
        self._spent: Micros = 0  # by measurements too small to count on their own, as those of a node with few slots
        self._counted = 0
        self._per_start: float | None = None

    def begin(self, now: Micros) -> None:
        self._since, self.starts = now, 0

    def end(self, now: Micros) -> None:
        self.measure(now)
        self._since = None

    def measure(self, now: Micros) -> None:
        if self._since is None:
            return
        self._spent += now - self._since
        self._counted += self.starts
        self._since, self.starts = now, 0
        if self._counted >= FEWEST:
            sample = max(self._spent, 1) / self._counted
            self._per_start = sample if self._per_start is None else (self._per_start + sample) / 2
            self._spent = self._counted = 0

    def soon(self) -> int:
        """Jobs that would start within the next tenth of a second; none before anything is known."""
        return 0 if self._per_start is None else min(int(AHEAD / self._per_start), MOST_AHEAD)

"""The first violation ends a run. It is noted, not raised: it may be found inside a task, whose exceptions the engine rightly catches."""

from __future__ import annotations

from collections.abc import Callable


class Violation(AssertionError):
    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant


class Verdict:
    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self.violation: Violation | None = None

    def violate(self, invariant: str, message: str) -> None:
        if self.violation is None:
            self.violation = Violation(invariant, message)
            self._stop()

    def require(self, holds: bool, invariant: str, message: str) -> None:
        if not holds:
            self.violate(invariant, message)

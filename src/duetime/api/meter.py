"""Counts requests by route. The path of a request is never a label, so the number of series is bounded."""

from __future__ import annotations

from collections import Counter
from typing import Any

from duetime.model.histogram import Histogram
from duetime.model.instant import Micros

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
OTHER = "other"
BATCH = 500  # durations are added to their histogram in batches, which is cheaper


class Meter:
    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, str]] = Counter()  # route, method, class of status
        self._durations: dict[str, list[Micros]] = {}
        self._histograms: dict[str, Histogram] = {}

    def count(self, scope: Any, status: int, duration: Micros) -> None:
        path = template_of(scope)
        method = scope["method"]
        self.requests[path, method if method in METHODS else OTHER, f"{status // 100}xx"] += 1
        durations = self._durations.setdefault(path, [])
        durations.append(duration)
        if len(durations) >= BATCH:
            self._sort(path)

    def durations(self) -> dict[str, Histogram]:
        """By route."""
        for path in self._durations:
            self._sort(path)
        return self._histograms

    def _sort(self, path: str) -> None:
        self._histograms.setdefault(path, Histogram()).add(self._durations[path])
        self._durations[path].clear()


def template_of(scope: Any) -> str:
    """The template of the matched route, with the prefix of its router."""
    shape: str | None = getattr(scope.get("route"), "path_format", None)
    if shape is None:
        return OTHER
    filled = shape.format_map(scope.get("path_params", {}))
    path: str = scope["path"]
    at = len(path) - len(filled)
    return path[:at] + shape if path[at:].lower() == filled.lower() else shape  # a UUID may be in capitals

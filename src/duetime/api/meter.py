"""Counts requests by the route's own path, never by what somebody asked for: so there are only as many series as routes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from duetime.model.histogram import Histogram
from duetime.model.instant import Micros

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
OTHER = "other"
MANY = 500  # lapses are sorted into their histogram in batches: that is cheaper, and a request need not wait for it


class Meter:
    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, str]] = Counter()  # route, method, class of status
        self._lapses: dict[str, list[Micros]] = {}
        self._histograms: dict[str, Histogram] = {}

    def count(self, scope: Any, status: int, lapse: Micros, route: str | None = None) -> None:
        path = route or template_of(scope)
        method = scope["method"]
        self.requests[path, method if method in METHODS else OTHER, f"{status // 100}xx"] += 1
        lapses = self._lapses.setdefault(path, [])
        lapses.append(lapse)
        if len(lapses) >= MANY:
            self._sort(path)

    def lapses(self) -> dict[str, Histogram]:
        """By route."""
        for path in self._lapses:
            self._sort(path)
        return self._histograms

    def _sort(self, path: str) -> None:
        self._histograms.setdefault(path, Histogram()).add(self._lapses[path])
        self._lapses[path].clear()


def template_of(scope: Any) -> str:
    """The whole path of the route that was found, in its own words. The route itself knows it without the prefix of its router."""
    shape: str | None = getattr(scope.get("route"), "path_format", None)
    if shape is None:
        return OTHER
    filled = shape.format_map(scope.get("path_params", {}))
    path: str = scope["path"]
    return path.removesuffix(filled) + shape if path.endswith(filled) else shape

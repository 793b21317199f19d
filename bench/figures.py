"""Measured figures, each with the figure of the bare store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """`raw` is the figure of a bare loop on the same store, measured just before; `detail` goes to the
    JSON, `remark` to the table."""

    key: str
    name: str
    value: float
    unit: str
    raw: float | None = None
    remark: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_raw(self) -> float | None:
        return self.value / self.raw if self.raw else None


class Sheet:
    """All figures of a run by key; a later figure of the same key replaces the earlier."""

    def __init__(self) -> None:
        self._figures: dict[str, Figure] = {}

    def add(self, figure: Figure) -> None:
        self._figures[figure.key] = figure

    def value(self, key: str) -> float | None:
        found = self._figures.get(key)
        return None if found is None else found.value

    def __iter__(self) -> Iterator[Figure]:
        return iter(self._figures.values())

    def __len__(self) -> int:
        return len(self._figures)


def quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)

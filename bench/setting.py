"""What a workload gets: the store to measure, its bare ceiling, the amount of work, and a way to print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.raw.ceiling import Ceiling
from bench.scale import Scale
from bench.stage import Stage


@dataclass(frozen=True, slots=True)
class Setting:
    stage: Stage
    ceiling: Ceiling
    scale: Scale
    say: Callable[[str], None]

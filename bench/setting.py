"""What a workload gets: the store to measure, its bare ceiling, how much to do, and a voice."""

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

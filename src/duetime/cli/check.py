"""A check of `duetime doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn"]


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: Level
    text: str
    remedy: str = ""

"""What happened, as the stream of events tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`kind`: job, schedule, node, queue; many, when single ones were too many to tell; reset, when events in between are lost."""

    id: int | None
    kind: str
    data: dict[str, Any]

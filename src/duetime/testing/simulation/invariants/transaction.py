"""The transaction of the store that is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.settle import Settlement
from duetime.testing.simulation.processes import Host


class Transaction:
    __slots__ = ("arguments", "clock", "decisions", "host", "now", "verb")

    def __init__(
        self, verb: str, host: Host | None, arguments: tuple[Any, ...], now: Micros, clock: Callable[[], Micros] = lambda: 0
    ) -> None:
        self.verb = verb
        self.host = host
        self.arguments = arguments
        self.now = now
        self.clock = clock
        settled = arguments[0] if verb == "settle" else arguments[:1] if verb == "commit" else ()
        self.decisions: dict[UUID, Settlement] = {decision.id: decision for decision in settled}

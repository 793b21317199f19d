"""The transaction that the store executes now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.settle import Settlement
from duetime.testing.simulation.hosts import Host


class StoreTransaction:
    __slots__ = ("arguments", "clock", "decisions", "host", "now", "verb")

    def __init__(
        self,
        verb: str,
        host: Host | None,
        arguments: tuple[Any, ...],
        now: Micros,
        clock: Callable[[], Micros] = lambda: 0,
    ) -> None:
        self.verb = verb
        self.host = host
        self.arguments = arguments
        self.now = now
        self.clock = clock
        settled = arguments[0] if verb == "settle" else arguments[:1] if verb == "commit" else ()
        self.decisions: dict[UUID, Settlement] = {decision.id: decision for decision in settled}

    @property
    def start_event(self) -> str:
        """How a job starts: claimed, or as the successor of a job that was settled."""
        return "successor" if self.verb == "settle" else "claim"

    @property
    def schedule_change(self) -> str:
        """What `write_schedule` does; the verb itself for any other."""
        if self.verb != "write_schedule":
            return self.verb
        state = self.arguments[2]
        return "remove_schedule" if state is None else "pause_schedule" if state.paused else "put_schedule"

    @property
    def caller(self) -> str:
        return self.host.name if self.host else "-"

"""Processes of the simulated fleet: what the loop runs and stops, what happened to each, and the weather on its network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.testing.simulation.loop import Process

LONG_AGO = -3_600 * SECOND


@dataclass(slots=True)
class Weather:
    """How bad the way to the store is, per call."""

    lost_requests: float = 0.0
    lost_replies: float = 0.0
    lost_hints: float = 0.0
    doubled_hints: float = 0.0
    latency: float = 0.002  # seconds, the most each way on most calls
    stalls: float = 0.0  # share of calls that take up to `stall` seconds each way
    stall: float = 0.0
    tardy: float = 0.0  # share of what running attempts have to say that arrives seconds later


class Host:
    """One run of one program. What comes after a crash is another host."""

    def __init__(self, process: Process, weather: Weather) -> None:
        self.process = process
        self.weather = weather
        self.node: NodeId | None = None
        self.disturbed_at: Micros = LONG_AGO  # when a fault last touched it
        self.ended = False  # by itself
        self.stopping = False
        self.held: Callable[[], int] = lambda: 0  # jobs its worker thinks it holds
        self.unsubscribes: list[Callable[[], None]] = []

    @property
    def name(self) -> str:
        return self.process.name

    @property
    def gone(self) -> bool:
        return self.ended or self.process.dead

    def disturb(self, now: Micros) -> None:
        self.disturbed_at = max(self.disturbed_at, now)

"""The simulated programs: one host per run of a program, with its process and its network conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.queues.memory import MemoryQueue
from duetime.testing.processes import Process

LONG_AGO = -3_600 * SECOND


@dataclass(slots=True)
class NetworkConditions:
    """Between one host and the store. Shares are probabilities per call."""

    lost_requests: float = 0.0
    lost_replies: float = 0.0
    lost_hints: float = 0.0
    doubled_hints: float = 0.0
    latency: float = 0.002  # seconds, the maximum each way on most calls
    stalls: float = 0.0  # share of calls that take up to `stall` seconds each way
    stall: float = 0.0
    late_writes: float = 0.0  # share of writes by running attempts that arrive seconds later


class Host:
    """One run of one program. A restart after a crash is another host."""

    def __init__(self, process: Process, conditions: NetworkConditions) -> None:
        self.process = process
        self.conditions = conditions
        self.node: NodeId | None = None
        self.disturbed_at: Micros = LONG_AGO  # when a fault last affected it
        self.ended = False  # shut down, not killed
        self.stopping = False
        self.held: Callable[[], int] = lambda: 0  # the number of jobs that its worker believes to hold
        self.unsubscribes: list[Callable[[], None]] = []
        self.connections: list[MemoryQueue] = []  # to the broker

    @property
    def name(self) -> str:
        return self.process.name

    @property
    def gone(self) -> bool:
        return self.ended or self.process.dead

    def disturb(self, now: Micros) -> None:
        self.disturbed_at = max(self.disturbed_at, now)

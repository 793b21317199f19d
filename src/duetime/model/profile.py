"""What a node publishes about itself: its queues, its targets, its concurrency and the limits of its
tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from duetime.model.codec import decode, encode
from duetime.model.limit import Rate, TaskLimit


@dataclass(frozen=True, slots=True)
class NodeProfile:
    targets: tuple[str, ...]
    queues: tuple[str, ...] = ()  # empty: all queues
    concurrency: int = 1
    bounds: tuple[TaskLimit, ...] = ()

    def serves(self, queue: str) -> bool:
        return not self.queues or queue in self.queues

    def bound(self, target: str) -> TaskLimit | None:
        return next((bound for bound in self.bounds if bound.target == target), None)

    def to_bytes(self) -> bytes:
        bounds = [
            [bound.target, bound.max_running, None if bound.rate is None else list(bound.rate)]
            for bound in self.bounds
        ]
        return encode(
            {
                "targets": self.targets,
                "queues": self.queues,
                "concurrency": self.concurrency,
                "bounds": bounds,
            }
        )

    @staticmethod
    def from_bytes(data: bytes) -> NodeProfile:
        value = decode(data)
        return NodeProfile(
            tuple(value["targets"]),
            tuple(value["queues"]),
            value["concurrency"],
            tuple(map(_bound, value["bounds"])),
        )


def _bound(value: Any) -> TaskLimit:
    target, most, rate = value
    return TaskLimit(target, most, None if rate is None else Rate(*rate))

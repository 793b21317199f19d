"""What a node says of itself beyond its row: the queues it serves, the targets it knows, how much it does at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from duetime.model.codec import decode, encode
from duetime.model.limit import Bound, Rate


@dataclass(frozen=True, slots=True)
class Profile:
    targets: tuple[str, ...]
    queues: tuple[str, ...] = ()  # empty: all of them
    concurrency: int = 1
    bounds: tuple[Bound, ...] = ()

    def serves(self, queue: str) -> bool:
        return not self.queues or queue in self.queues

    def bound(self, target: str) -> Bound | None:
        return next((bound for bound in self.bounds if bound.target == target), None)

    def to_bytes(self) -> bytes:
        bounds = [[bound.target, bound.most, None if bound.rate is None else list(bound.rate)] for bound in self.bounds]
        return encode({"targets": self.targets, "queues": self.queues, "concurrency": self.concurrency, "bounds": bounds})

    @staticmethod
    def from_bytes(data: bytes) -> Profile:
        value = decode(data)
        return Profile(tuple(value["targets"]), tuple(value["queues"]), value["concurrency"], tuple(map(_bound, value["bounds"])))


def _bound(value: Any) -> Bound:
    target, most, rate = value
    return Bound(target, most, None if rate is None else Rate(*rate))

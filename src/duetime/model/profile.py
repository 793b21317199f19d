"""What a node publishes about itself: its queues, its targets, its concurrency and the limits of its
tasks; of a remote worker also its tenant, its lease and the policies of its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from duetime.model.codec import decode, encode
from duetime.model.instant import Micros
from duetime.model.limit import Rate, TaskLimit
from duetime.model.permissions import Permissions


@dataclass(frozen=True, slots=True)
class NodeProfile:
    targets: tuple[str, ...]
    queues: tuple[str, ...] = ()  # empty: all queues
    concurrency: int = 1
    bounds: tuple[TaskLimit, ...] = ()
    broker: str | None = None  # its address, without a password
    permissions: Permissions | None = None  # None: it has not said
    tenant: str | None = None  # of a remote worker, which serves no other; None: all tenants
    lease: Micros = 0  # of a remote worker: for so long each heartbeat extends it
    policies: Mapping[str, Any] = field(
        default_factory=dict
    )  # of a remote worker, by task, as a job has them

    def serves(self, queue: str) -> bool:
        return not self.queues or queue in self.queues

    def visible_to(self, tenant: str) -> bool:
        """Whether jobs of this tenant can run there."""
        return self.tenant in (None, tenant)

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
                "broker": self.broker,
                "permissions": self.permissions,
                "tenant": self.tenant,
                "lease": self.lease,
                "policies": self.policies,
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
            value.get("broker"),
            _permissions(value.get("permissions")),
            value.get("tenant"),
            value.get("lease", 0),
            value.get("policies", {}),
        )


def _permissions(value: Any) -> Permissions | None:
    return None if value is None else {name: tuple(own) for name, own in value.items()}


def _bound(value: Any) -> TaskLimit:
    target, most, rate = value
    return TaskLimit(target, most, None if rate is None else Rate(*rate))

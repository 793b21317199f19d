"""Nodes and the leases they hold. A lease says which node tries first; correctness never depends on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, NewType
from uuid import UUID

from duetime.model.ids import SEGMENTS
from duetime.model.instant import Micros
from duetime.model.limit import TaskLimit

NodeId = NewType("NodeId", int)
NodeState = Literal["alive", "expired", "dead", "left"]
LEADER = "leader"
_DISPATCH = "dispatch/"


def segment_lease(segment: int) -> str:
    return f"segment/{segment}"


def dispatch_lease(segment: int) -> str:
    return f"{_DISPATCH}{segment}"


def role_of(lease: str) -> str:
    """The role of the nodes that hold a lease of this name."""
    return "dispatcher" if lease.startswith(_DISPATCH) else "planner"


@dataclass(frozen=True, slots=True)
class NodeDraft:
    name: str
    roles: tuple[str, ...]
    version: str
    limits: tuple[TaskLimit, ...] = ()  # of every target it runs
    remote: bool = (
        False  # it runs elsewhere and is not the process that joins: only its lease tells if it lives
    )


@dataclass(frozen=True, slots=True)
class Node:
    """One run of one process. Its id is never used again, so what is decided about it is final."""

    id: NodeId
    name: str
    roles: tuple[str, ...]
    version: str
    started_at: Micros
    lease_until: Micros
    dead: bool
    has_left: bool  # dead, because it ended in an orderly way
    running: int | None  # jobs it runs now, if they were counted

    def state(self, now: Micros) -> NodeState:
        if self.dead:
            return "left" if self.has_left else "dead"
        return "expired" if self.lease_until < now else "alive"


@dataclass(frozen=True, slots=True)
class Lease:
    """Valid as long as the node lease of its holder: one heartbeat renews all leases of a node."""

    name: str
    holder: NodeId | None
    token: int
    expires_at: Micros | None


class Holding(NamedTuple):
    """A lease as it is stored. A holder that is dead holds nothing."""

    holder: NodeId | None
    token: int  # rises with each holder


def share_leases(
    known: Mapping[str, Holding], node: NodeId, wanted: Collection[str], living: Collection[NodeId]
) -> dict[str, Holding]:
    """The leases after this node has taken those that it wants and that are free, and dropped its others."""
    shared = dict(known)
    for name in {*known, *wanted}:
        holder, token = known.get(name, FREE)
        if name in wanted and holder not in living:
            shared[name] = Holding(node, token + 1)
        elif name not in wanted and holder == node:
            shared[name] = Holding(None, token)
    return shared


FREE = Holding(None, 0)


@dataclass(frozen=True, slots=True)
class Beat:
    """The store's reply to a heartbeat. If not alive, the node stops and joins again under a new id."""

    alive: bool
    cancels: tuple[UUID, ...]  # running jobs of this node that were asked to stop
    peers: int = 0  # other workers that are alive


def fair_share(me: NodeId, nodes: list[NodeId]) -> set[int]:
    """The segments of this node when all of these share the work."""
    ranked = sorted({*nodes, me})
    return set(range(ranked.index(me), SEGMENTS, len(ranked)))

"""Nodes and the leases they hold. A lease says who tries; correctness never rests on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType
from uuid import UUID

from duetime.model.ids import SEGMENTS
from duetime.model.instant import Micros

NodeId = NewType("NodeId", int)
LEADER = "leader"


def segment_lease(segment: int) -> str:
    return f"segment/{segment}"


@dataclass(frozen=True, slots=True)
class NodeDraft:
    name: str
    roles: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Node:
    """One run of one process. Its id is never used again, so a verdict about it is final."""

    id: NodeId
    name: str
    roles: tuple[str, ...]
    version: str
    started_at: Micros
    lease_until: Micros
    dead: bool
    running: int  # jobs it holds now


@dataclass(frozen=True, slots=True)
class Lease:
    """Held as long as its holder's own node lease lasts: one row beats for all of them."""

    name: str
    holder: NodeId | None
    token: int
    expires_at: Micros | None


@dataclass(frozen=True, slots=True)
class Beat:
    """The store's answer to a heartbeat. Not alive: stop, and join again under a new id."""

    alive: bool
    cancels: tuple[UUID, ...]  # ids of running jobs of this node that somebody wants stopped
    peers: int = 0  # other workers that are alive


def fair_share(me: NodeId, planners: list[NodeId]) -> set[int]:
    """The segments this planner should hold when all of these share the work."""
    ranked = sorted({*planners, me})
    return set(range(ranked.index(me), SEGMENTS, len(ranked)))

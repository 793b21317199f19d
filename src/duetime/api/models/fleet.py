"""Queues, nodes and leases in answers."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict

from duetime.api.models.fields import OutInstant, Output


class QueueOut(Output):
    model_config = ConfigDict(title="Queue")
    name: str
    paused: bool
    pause_note: str | None
    paused_at: OutInstant | None
    most: int | None
    rate: str | None
    pending: int
    due: int
    running: int


class QueuesOut(Output):
    model_config = ConfigDict(title="Queues")
    items: list[QueueOut]
    next_cursor: str | None


class NodeOut(Output):
    model_config = ConfigDict(title="Node")
    id: int
    name: str
    state: Literal["alive", "expired", "dead"]
    roles: list[str]
    version: str
    running: int
    started_at: OutInstant
    lease_until: OutInstant


class NodesOut(Output):
    model_config = ConfigDict(title="Nodes")
    items: list[NodeOut]
    next_cursor: str | None


class LeaseOut(Output):
    model_config = ConfigDict(title="Lease")
    name: str
    holder: int | None
    token: int
    expires_at: OutInstant | None


class LeasesOut(Output):
    model_config = ConfigDict(title="Leases")
    items: list[LeaseOut]
    next_cursor: str | None

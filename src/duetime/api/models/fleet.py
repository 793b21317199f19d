"""Queues, nodes and leases in requests and answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from duetime.api.models.fields import WHOLE, Input, OutInstant, Output
from duetime.api.models.plans import RateText
from duetime.model.limit import MOST_AT_ONCE


class QueueLimitIn(Input):
    """Replaces what was said before: what is null or left out is not limited."""

    model_config = ConfigDict(title="QueueLimit", json_schema_extra={"examples": [{"most": 5, "rate": "100/1m"}]})
    most: Annotated[int | None, Field(ge=1, le=MOST_AT_ONCE, description="Jobs of it running at once, over all nodes."), WHOLE] = None
    rate: Annotated[RateText | None, Field(description="Starts in a time, over all nodes.")] = None


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

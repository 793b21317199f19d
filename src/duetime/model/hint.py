"""Hints: notifications of a store that make its subscribers check earlier than they would by themselves. Any
hint may be lost."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.lease import NodeId


class JobHint(NamedTuple):
    """A job of this lane is due at this instant. Queue "*" means all queues; the priority then says how
    urgent the job may be."""

    queue: str
    priority: int
    due_at: Micros


class ScheduleHint(NamedTuple):
    """A schedule's cursor was set to this instant."""

    next_fire_time: Micros


class CancelHint(NamedTuple):
    """This running job of this node was asked to stop."""

    node: NodeId
    job_id: UUID


class DoneHint(NamedTuple):
    """A job with waiters has reached its final state."""

    job_id: UUID


class EventHint(NamedTuple):
    """The event log has grown to this id."""

    last: int


Hint = JobHint | ScheduleHint | CancelHint | DoneHint | EventHint

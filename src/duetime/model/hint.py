"""Hints: what a store tells its listeners so that they look sooner than they would by themselves. Any of them may be lost."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.lease import NodeId


class JobHint(NamedTuple):
    """A job of this lane is due at this instant. Queue "*" means: look at all of them; the priority then says how urgent it may be."""

    queue: str
    priority: int
    due_at: Micros
    exclusive: bool = True  # it may be of a schedule that runs one at a time


class ScheduleHint(NamedTuple):
    """A schedule's cursor was set to this instant."""

    next_fire_time: Micros


class CancelHint(NamedTuple):
    """Somebody wants this running job of this node stopped."""

    node: NodeId
    job_id: UUID


class DoneHint(NamedTuple):
    """A job somebody waits for has reached its final state."""

    job_id: UUID


class EventHint(NamedTuple):
    """The log of events has grown to this id."""

    last: int


Hint = JobHint | ScheduleHint | CancelHint | DoneHint | EventHint

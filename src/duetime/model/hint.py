"""Hints: notifications of a store that make its subscribers check earlier than they would by themselves. Any
hint may be lost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_TENANT, JobDraft
from duetime.model.lease import NodeId


class JobHint(NamedTuple):
    """A job of this lane is due at this instant. Queue "*" means all queues; the priority then says how
    urgent the job may be."""

    queue: str
    priority: int
    due_at: Micros
    tenant: str = DEFAULT_TENANT


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


def lane_hints(drafts: Iterable[JobDraft]) -> list[JobHint]:
    """One per lane, with its earliest due time."""
    earliest: dict[tuple[str, int, str], Micros] = {}
    for draft in drafts:
        lane = (draft.queue, draft.priority, draft.tenant)
        if draft.due_at < earliest.setdefault(lane, draft.due_at):
            earliest[lane] = draft.due_at
    return [
        JobHint(queue, priority, due_at, tenant) for (queue, priority, tenant), due_at in earliest.items()
    ]


Hint = JobHint | ScheduleHint | CancelHint | DoneHint | EventHint

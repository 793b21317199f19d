"""Hints as text, and which of them cover others, for stores that send them between processes."""

from __future__ import annotations

from uuid import UUID

from duetime.model.hint import CancelHint, DoneHint, EventHint, Hint, JobHint, ScheduleHint
from duetime.model.instant import Micros
from duetime.model.lease import NodeId


def encode(hint: Hint) -> str:
    """Short, whatever it is about. Names come last because they may contain anything."""
    match hint:
        case JobHint(queue, priority, due_at, tenant):
            return f"j {priority} {due_at} {len(tenant)} {tenant}{queue}"
        case ScheduleHint(instant):
            return f"s {instant}"
        case CancelHint(node, job_id):
            return f"c {node} {job_id}"
        case DoneHint(job_id):
            return f"d {job_id}"
        case EventHint(last):
            return f"e {last}"


def decode(payload: str) -> Hint | None:
    """None for a payload that this version does not know."""
    try:
        match payload.split(" ", 4):
            case ["j", priority, due_at, length, names]:
                return JobHint(names[int(length) :], int(priority), int(due_at), names[: int(length)])
            case ["s", instant]:
                return ScheduleHint(int(instant))
            case ["c", node, job_id]:
                return CancelHint(NodeId(int(node)), UUID(job_id))
            case ["d", job_id]:
                return DoneHint(UUID(job_id))
            case ["e", last]:
                return EventHint(int(last))
    except ValueError:
        pass
    return None


def subject_of(hint: Hint) -> tuple[object, ...]:
    """Hints with the same subject can be replaced by one of them."""
    if isinstance(hint, JobHint):  # by far the most
        return ("j", hint.queue, hint.priority, hint.tenant)
    match hint:
        case ScheduleHint():
            return ("s",)
        case CancelHint(node, job_id):
            return ("c", node, job_id)
        case DoneHint(job_id):
            return ("d", job_id)
        case EventHint():
            return ("e",)


def instant_of(hint: Hint) -> Micros:
    """Of two hints with the same subject the one about the earlier instant covers the other; of two about
    events, the one with the later id."""
    match hint:
        case JobHint(due_at=due_at):
            return due_at
        case ScheduleHint(instant):
            return instant
        case CancelHint() | DoneHint():
            return 0
        case EventHint(last):
            return -last

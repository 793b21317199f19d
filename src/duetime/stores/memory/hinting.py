"""What listeners are told about jobs and schedules."""

from __future__ import annotations

from collections.abc import Iterable

from duetime.model.hint import Hint, JobHint, ScheduleHint
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.model.schedule import Schedule

LOOK_AT_EVERYTHING = JobHint("*", 0, 0)


def job_hints(drafts: Iterable[JobDraft]) -> list[Hint]:
    """One per lane, with its earliest due time."""
    earliest: dict[tuple[str, int], Micros] = {}
    for draft in drafts:
        lane = (draft.queue, draft.priority)
        if lane not in earliest or draft.due_at < earliest[lane]:
            earliest[lane] = draft.due_at
    return [JobHint(queue, priority, due_at) for (queue, priority), due_at in earliest.items()]


def cursor_hints(schedule: Schedule) -> list[Hint]:
    return [] if schedule.next_fire_time is None else [ScheduleHint(schedule.next_fire_time)]

"""Which jobs and schedules a filter selects, and in which order listings show jobs."""

from __future__ import annotations

from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import JobFilter, State
from duetime.model.schedule import Schedule, ScheduleFilter
from duetime.model.search import error_group, has_field, has_label
from duetime.stores.memory.row import Row


def position(row: Row) -> tuple[Micros, UUID]:
    return row.draft.fire_time, row.draft.id


def selects(wanted: JobFilter, row: Row) -> bool:
    draft = row.draft
    return (
        draft.tenant == wanted.tenant
        and (wanted.states is None or row.state in wanted.states)
        and (wanted.queue is None or draft.queue == wanted.queue)
        and (wanted.owner is None or draft.owner == wanted.owner)
        and (wanted.schedule is None or draft.schedule == wanted.schedule)
        and (wanted.target is None or draft.target == wanted.target)
        and (wanted.node is None or row.node == wanted.node)
        and (wanted.due_after is None or draft.due_at >= wanted.due_after)
        and (wanted.due_before is None or draft.due_at < wanted.due_before)
        and (wanted.fire_after is None or draft.fire_time >= wanted.fire_after)
        and (wanted.fire_before is None or draft.fire_time < wanted.fire_before)
        and (not wanted.undisposed or (row.state is State.DEAD and row.disposition is None))
        and (wanted.label is None or has_label(draft.labels, *wanted.label))
        and (wanted.error is None or wanted.error.casefold() in (row.error or "").casefold())
        and (wanted.error_group is None or wanted.error_group == error_group(row.error or ""))
        and (wanted.payload is None or has_field(draft.payload, *wanted.payload))
    )


def selects_schedule(wanted: ScheduleFilter, schedule: Schedule) -> bool:
    draft = schedule.draft
    return (
        draft.tenant == wanted.tenant
        and (wanted.text is None or wanted.text.casefold() in draft.name.casefold())
        and (wanted.paused is None or schedule.paused is wanted.paused)
        and (wanted.owner is None or draft.owner == wanted.owner)
        and (wanted.target is None or draft.target == wanted.target)
        and (wanted.queue is None or draft.queue == wanted.queue)
        and (wanted.label is None or has_label(draft.labels, *wanted.label))
    )

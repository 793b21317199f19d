"""Unique jobs: whether an earlier job answers for a newcomer, and what happens to the two."""

from __future__ import annotations

from duetime.model.instant import Micros
from duetime.model.job import JobDraft, State
from duetime.model.unique import Admission, OnConflict, Rule
from duetime.stores.memory.jobs import MemoryJobs
from duetime.stores.memory.row import Row


def admit(jobs: MemoryJobs, draft: JobDraft, rule: Rule, now: Micros) -> Admission:
    if jobs.stored(draft.id):
        return Admission(draft.id)
    assert draft.unique_key is not None
    holder = jobs.live.get(jobs.holder(draft.tenant, draft.unique_key) or draft.id)
    earlier = (
        holder if holder is not None and _counts(holder, rule, now) else _finished(jobs, draft, rule, now)
    )
    if earlier is not None:
        return _settle_conflict(jobs, earlier, draft, rule.on_conflict, now)
    if holder is not None:
        jobs.give_up_key(holder)
    return Admission(jobs.add(draft, now))


def _finished(jobs: MemoryJobs, draft: JobDraft, rule: Rule, now: Micros) -> Row | None:
    """The youngest that counts. Rows come youngest first, so that those too old end the search."""
    if not any(state.final for state in rule.states):
        return None
    for row in jobs.with_key(draft.tenant, draft.unique_key):
        if not _recent(row, rule, now):
            return None
        if row.state.final and row.state in rule.states:
            return row
    return None


def _settle_conflict(
    jobs: MemoryJobs, earlier: Row, draft: JobDraft, on_conflict: OnConflict, now: Micros
) -> Admission:
    if earlier.state is not State.PENDING or on_conflict is OnConflict.SKIP:
        return Admission(earlier.draft.id, "skipped")
    if on_conflict is OnConflict.RESCHEDULE:
        jobs.reschedule(earlier, draft.due_at, earlier.draft.priority)
        return Admission(earlier.draft.id, "rescheduled")
    jobs.finish(earlier, State.CANCELLED, now, f"replaced by job {draft.id}")
    return Admission(jobs.add(draft, now), "replaced")


def _counts(row: Row, rule: Rule, now: Micros) -> bool:
    return row.state in rule.states and _recent(row, rule, now)


def _recent(row: Row, rule: Rule, now: Micros) -> bool:
    return rule.within is None or row.created_at >= now - rule.within

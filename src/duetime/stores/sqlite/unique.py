"""Unique jobs: stored unless an earlier job matches the rule."""

from __future__ import annotations

from uuid import UUID

from duetime.model.job import JobDraft, State
from duetime.model.unique import Admission, OnConflict, Rule
from duetime.stores.sqlite import jobs
from duetime.stores.sqlite.limits import let_next_ask
from duetime.stores.sqlite.rows import text_of, uuid_of
from duetime.stores.sqlite.session import SqliteTransaction


def admit(transaction: SqliteTransaction, draft: JobDraft, rule: Rule) -> Admission:
    assert draft.unique_key is not None
    reason = f"replaced by job {draft.id}"
    if transaction.value("is_stored", (draft.id.bytes,)):  # by an earlier call whose reply was lost
        replaced = transaction.value("was_replaced", (draft.tenant, draft.unique_key, reason))
        return Admission(draft.id, "replaced" if replaced else None)
    earliest = 0 if rule.within is None else transaction.now - rule.within
    holder = transaction.one("live_holder", (draft.tenant, draft.unique_key))
    if holder is not None:
        held_by, running, created_at = holder
        if created_at >= earliest and (State.RUNNING if running else State.PENDING) in rule.states:
            return _resolve_conflict(transaction, draft, rule, held_by, bool(running), reason)
    if (past := _past_holder(transaction, draft, rule, earliest)) is not None:
        return Admission(past, "skipped")
    if holder is not None:
        transaction.change("give_up_key", (holder[0],))
    return _store(transaction, draft)


def _past_holder(transaction: SqliteTransaction, draft: JobDraft, rule: Rule, earliest: int) -> UUID | None:
    final = [state for state in rule.states if state.final]
    found = (
        transaction.one("past_holder", (draft.tenant, draft.unique_key, text_of(final), earliest))
        if final
        else None
    )
    return None if found is None else uuid_of(found[0])


def _resolve_conflict(
    transaction: SqliteTransaction, draft: JobDraft, rule: Rule, holder: bytes, running: bool, reason: str
) -> Admission:
    if running or rule.on_conflict is OnConflict.SKIP:
        return Admission(uuid_of(holder), "skipped")
    if rule.on_conflict is OnConflict.RESCHEDULE:
        jobs.reschedule(transaction, draft.tenant, uuid_of(holder), draft.due_at, None)
        return Admission(uuid_of(holder), "rescheduled")
    let_next_ask(transaction, *jobs.end_pending(transaction, holder, "cancelled", reason))
    return _store(transaction, draft)._replace(conflict="replaced")


def _store(transaction: SqliteTransaction, draft: JobDraft) -> Admission:
    [stored] = jobs.add(transaction, [draft])
    return Admission(stored)

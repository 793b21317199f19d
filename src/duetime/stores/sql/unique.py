"""Unique jobs: stored unless an earlier job matches the rule."""

from __future__ import annotations

from uuid import UUID

from duetime.model.job import JobDraft, State
from duetime.model.unique import Admission, OnConflict, Rule
from duetime.stores.sql import jobs
from duetime.stores.sql.limits import let_next_ask
from duetime.stores.sql.rows import uuid_of
from duetime.stores.sql.session import SqlTransaction


async def admit(transaction: SqlTransaction, draft: JobDraft, rule: Rule) -> Admission:
    assert draft.unique_key is not None
    reason = f"replaced by job {draft.id}"
    if await transaction.value("is_stored", (draft.id.bytes,)):  # by an earlier call whose reply was lost
        replaced = await transaction.value("was_replaced", (draft.tenant, draft.unique_key, reason))
        return Admission(draft.id, "replaced" if replaced else None)
    earliest = 0 if rule.within is None else transaction.now - rule.within
    holder = await transaction.one("live_holder", (draft.tenant, draft.unique_key))
    if holder is not None:
        held_by, running, created_at = holder
        if created_at >= earliest and (State.RUNNING if running else State.PENDING) in rule.states:
            return await _resolve_conflict(transaction, draft, rule, held_by, bool(running), reason)
    if (past := await _past_holder(transaction, draft, rule, earliest)) is not None:
        return Admission(past, "skipped")
    if holder is not None:
        await transaction.change("give_up_key", (holder[0],))
    return await _store(transaction, draft, rule)


async def _past_holder(
    transaction: SqlTransaction, draft: JobDraft, rule: Rule, earliest: int
) -> UUID | None:
    final = [state for state in rule.states if state.final]
    found = (
        await transaction.one(
            "past_holder", (draft.tenant, draft.unique_key, transaction.listed(final), earliest)
        )
        if final
        else None
    )
    return None if found is None else uuid_of(found[0])


async def _resolve_conflict(
    transaction: SqlTransaction, draft: JobDraft, rule: Rule, holder: bytes, running: bool, reason: str
) -> Admission:
    if running or rule.on_conflict is OnConflict.SKIP:
        return Admission(uuid_of(holder), "skipped")
    if rule.on_conflict is OnConflict.RESCHEDULE:
        await jobs.reschedule(transaction, draft.tenant, uuid_of(holder), draft.due_at, None)
        return Admission(uuid_of(holder), "rescheduled")
    names = await jobs.end_pending(transaction, holder, "cancelled", reason)
    await let_next_ask(transaction, *names)
    return (await _store(transaction, draft, rule))._replace(conflict="replaced")


async def _store(transaction: SqlTransaction, draft: JobDraft, rule: Rule) -> Admission:
    [stored] = await jobs.add(transaction, [draft])
    if stored == draft.id:
        return Admission(stored)
    return await admit(transaction, draft, rule)  # another transaction stored a job with the key meanwhile

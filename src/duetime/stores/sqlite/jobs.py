"""Jobs, as callers see them: store, look up, cancel, reschedule, retry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from uuid import UUID

from duetime.errors import Conflict
from duetime.model.hint import CancelHint, JobHint, lane_hints
from duetime.model.instant import Micros
from duetime.model.job import Attempt, CancelReply, Job, JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.permits import waiting_when_stored
from duetime.stores.external import cancellation
from duetime.stores.sqlite import settle
from duetime.stores.sqlite.limits import let_next_ask
from duetime.stores.sqlite.queues import add_queues
from duetime.stores.sqlite.rows import attempt_of, draft_rows, job_of, uuid_of
from duetime.stores.sqlite.session import Row, SqliteSession, SqliteTransaction

_id = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Addition:
    """A call of add_jobs. Calls that wait at the same time are stored together, as if one caller had
    submitted all their drafts."""

    drafts: Sequence[JobDraft]

    def __call__(self, transaction: SqliteTransaction) -> list[UUID]:
        return add(transaction, self.drafts)

    @staticmethod
    def together(transaction: SqliteTransaction, additions: Sequence[Addition]) -> list[list[UUID]]:
        ids = iter(add(transaction, [draft for addition in additions for draft in addition.drafts]))
        return [list(islice(ids, len(addition.drafts))) for addition in additions]


def add(transaction: SqliteTransaction, drafts: Sequence[JobDraft]) -> list[UUID]:
    rows = draft_rows(drafts, transaction.now, waiting_when_stored(drafts, transaction.now))
    stored = transaction.change_many("add_job", _without_past(transaction, rows))
    hints = lane_hints(drafts)
    add_queues(transaction, ((hint.queue, hint.tenant) for hint in hints))
    transaction.tell(hints)
    if stored == len(drafts):
        return [draft.id for draft in drafts]
    return [_answer(transaction, draft) for draft in drafts]


def _without_past(transaction: SqliteTransaction, rows: list[Row]) -> list[Row]:
    """Without drafts whose job has finished: it must not start a second time."""
    if not rows or not transaction.value("past_between", (min(map(_id, rows)), max(map(_id, rows)))):
        return rows
    return [row for row in rows if not transaction.value("past_between", (row[0], row[0]))]


def _answer(transaction: SqliteTransaction, draft: JobDraft) -> UUID:
    if draft.unique_key is None or transaction.value("is_stored", (draft.id.bytes,)):
        return draft.id
    return uuid_of(transaction.value("live_holder", (draft.tenant, draft.unique_key)))


def get(session: SqliteSession, tenant: str, job_id: UUID) -> Job | None:
    key = (tenant, job_id.bytes)
    row = session.one("get_live", key) or session.one("get_past", key)
    return None if row is None else job_of(row)


def attempts(session: SqliteSession, job_id: UUID) -> list[Attempt]:
    return [attempt_of(job_id, row) for row in session.all("list_attempts", (job_id.bytes,))]


def cancel(transaction: SqliteTransaction, tenant: str, job_id: UUID, reason: str) -> CancelReply:
    job = get(transaction, tenant, job_id)
    if job is None:
        return CancelReply.MISSING
    if job.state.final:
        return CancelReply.FINAL
    if job.state is State.RUNNING and job.node is not None:
        transaction.change("request_cancel", (job_id.bytes, reason))
        transaction.tell([CancelHint(NodeId(job.node), job_id)])
        return CancelReply.REQUESTED
    if job.state is State.RUNNING:  # external
        settle.write(
            transaction,
            [
                cancellation(
                    job_id, job.attempt, job.due_at, job.failures, job.losses, transaction.now, reason
                )
            ],
        )
    else:
        let_next_ask(transaction, *end_pending(transaction, job_id.bytes, "cancelled", reason))
    return CancelReply.CANCELLED


def end_pending(transaction: SqliteTransaction, job_id: bytes, state: str, reason: str) -> Row:
    """Returns its limit key and its schedule."""
    transaction.change("end_pending", (job_id, state, transaction.now, reason))
    [names] = transaction.all("delete_pending", (job_id,))
    transaction.ended.append((job_id,))
    return names


def reschedule(
    transaction: SqliteTransaction, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
) -> bool:
    moved = transaction.one("reschedule_job", (tenant, job_id.bytes, due_at, priority))
    if moved is None:
        return False
    *hint, limit_key = moved
    transaction.tell([JobHint(*hint)])
    let_next_ask(transaction, limit_key)
    return True


def resolve_dead(transaction: SqliteTransaction, tenant: str, job_id: UUID, retry: JobDraft | None) -> bool:
    disposition = "discarded" if retry is None else "retried"
    resolved = transaction.change("resolve_dead_job", (tenant, job_id.bytes, disposition)) == 1
    if retry is None:
        return resolved
    if not resolved:
        return bool(transaction.value("was_retried", (tenant, job_id.bytes, retry.id.bytes)))
    [stored] = add(transaction, [retry])
    if stored != retry.id:
        raise Conflict(
            f"job {stored} holds the unique key {retry.unique_key!r}: wait for it to finish, or cancel it"
        )
    return True

"""Jobs, as callers see them: store, look up, cancel, reschedule, retry."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from uuid import UUID

from duetime.errors import Conflict
from duetime.model.hint import CancelHint, DoneHint, JobHint, lane_hints
from duetime.model.instant import Micros
from duetime.model.job import Attempt, CancelReply, Job, JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.permits import waiting_when_stored
from duetime.stores.external import cancellation
from duetime.stores.sql import settle
from duetime.stores.sql.limits import let_next_ask
from duetime.stores.sql.queues import add_queues
from duetime.stores.sql.rows import attempt_of, draft_rows, job_of, uuid_of
from duetime.stores.sql.session import Row, SqlSession, SqlTransaction

_id = itemgetter(0)


async def add(transaction: SqlTransaction, drafts: Sequence[JobDraft], counted: bool = True) -> list[UUID]:
    """`counted`: the connection tells how many rows were stored."""
    rows = draft_rows(drafts, transaction.now, waiting_when_stored(drafts, transaction.now))
    stored = await transaction.change_many("add_job", rows)
    hints = lane_hints(drafts)
    await add_queues(transaction, ((hint.queue, hint.tenant) for hint in hints))
    transaction.tell(hints)
    if not await _withdraw_finished(transaction, rows) and counted and stored == len(drafts):
        return [draft.id for draft in drafts]
    return [await _answer(transaction, draft) for draft in drafts]


async def _withdraw_finished(transaction: SqlTransaction, rows: list[Row]) -> int:
    """Drafts whose job has finished: it must not start a second time. Looked for after they were stored: only
    then can no other transaction end such a job unseen."""
    if not rows or not await transaction.value("past_between", (min(map(_id, rows)), max(map(_id, rows)))):
        return 0
    return await transaction.change_many("withdraw_finished", [(row[0],) for row in rows])


async def _answer(transaction: SqlTransaction, draft: JobDraft) -> UUID:
    if draft.unique_key is None or await transaction.value("is_stored", (draft.id.bytes,)):
        return draft.id
    return uuid_of(await transaction.value("live_holder", (draft.tenant, draft.unique_key)))


async def get(session: SqlSession, tenant: str, job_id: UUID) -> Job | None:
    key = (tenant, job_id.bytes)
    row = await session.one("get_live", key) or await session.one("get_past", key)
    return None if row is None else job_of(row)


async def attempts(session: SqlSession, job_id: UUID) -> list[Attempt]:
    return [attempt_of(job_id, row) for row in await session.all("list_attempts", (job_id.bytes,))]


async def cancel(transaction: SqlTransaction, tenant: str, job_id: UUID, reason: str) -> CancelReply:
    key = (tenant, job_id.bytes)
    row = await transaction.one("lock_job", key) or await transaction.one("get_past", key)
    job = None if row is None else job_of(row)
    if job is None:
        return CancelReply.MISSING
    if job.state.final:
        return CancelReply.FINAL
    if job.state is State.RUNNING and job.node is not None:
        await transaction.change("request_cancel", (job_id.bytes, reason))
        transaction.tell([CancelHint(NodeId(job.node), job_id)])
        return CancelReply.REQUESTED
    if job.state is State.RUNNING:  # external
        await settle.write(
            transaction,
            [
                cancellation(
                    job_id, job.attempt, job.due_at, job.failures, job.losses, transaction.now, reason
                )
            ],
        )
    else:
        names = await end_pending(transaction, job_id.bytes, "cancelled", reason)
        await let_next_ask(transaction, *names)
    return CancelReply.CANCELLED


async def end_pending(transaction: SqlTransaction, job_id: bytes, state: str, reason: str) -> Row:
    """Returns its limit key and its schedule."""
    await transaction.change("end_pending", (job_id, state, transaction.now, reason))
    [(*names, awaited)] = await transaction.all("delete_pending", (job_id,))
    transaction.ended.append((job_id,))
    if awaited:
        transaction.tell([DoneHint(uuid_of(job_id))])
    return tuple(names)


async def reschedule(
    transaction: SqlTransaction, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
) -> bool:
    moved = await transaction.one("reschedule_job", (tenant, job_id.bytes, due_at, priority))
    if moved is None:
        return False
    *hint, limit_key = moved
    transaction.tell([JobHint(*hint)])
    await let_next_ask(transaction, limit_key)
    return True


async def resolve_dead(
    transaction: SqlTransaction, tenant: str, job_id: UUID, retry: JobDraft | None
) -> bool:
    disposition = "discarded" if retry is None else "retried"
    resolved = await transaction.change("resolve_dead_job", (tenant, job_id.bytes, disposition)) == 1
    if retry is None:
        return resolved
    if not resolved:
        return bool(await transaction.value("was_retried", (tenant, job_id.bytes, retry.id.bytes)))
    [stored] = await add(transaction, [retry])
    if stored != retry.id:
        raise Conflict(
            f"job {stored} holds the unique key {retry.unique_key!r}: wait for it to finish, or cancel it"
        )
    return True

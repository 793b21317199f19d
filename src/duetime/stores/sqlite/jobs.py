"""What callers ask of jobs: store, look up, cancel, move, revive."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from uuid import UUID

from duetime.errors import Conflict
from duetime.model.attempt import Attempt
from duetime.model.hint import CancelHint, Hint, JobHint
from duetime.model.instant import Micros
from duetime.model.job import CancelReply, Job, JobDraft
from duetime.model.lease import NodeId
from duetime.store import QueueCount
from duetime.stores.sqlite import outside, settling
from duetime.stores.sqlite.rows import attempt_of, draft_rows, gated_rows, job_of, uuid_of
from duetime.stores.sqlite.session import Row, Session, Transaction
from duetime.stores.sqlite.settling import tell_freed

_id = itemgetter(0)
_lane_and_due = itemgetter(6, 7, 5)
_GATE = 17


@dataclass(frozen=True, slots=True)
class Addition:
    """A call of add_jobs. Those that wait together are stored together, as if one caller had handed in all their drafts."""

    drafts: Sequence[JobDraft]
    known_queues: Collection[str]

    def __call__(self, transaction: Transaction) -> list[UUID]:
        return add(transaction, self.drafts, self.known_queues)

    @staticmethod
    def together(transaction: Transaction, additions: Sequence[Addition]) -> list[list[UUID]]:
        drafts = [draft for addition in additions for draft in addition.drafts]
        ids = iter(add(transaction, drafts, additions[0].known_queues))
        return [list(islice(ids, len(addition.drafts))) for addition in additions]


def add(transaction: Transaction, drafts: Sequence[JobDraft], known_queues: Collection[str]) -> list[UUID]:
    plain = [draft for draft in drafts if draft[_GATE] is None]
    stored = transaction.change_many("add_job", _not_past(transaction, draft_rows(plain, transaction.now)))
    if len(plain) < len(drafts):
        gated = [draft for draft in drafts if draft[_GATE] is not None]
        stored += transaction.change_many("add_gated_job", _not_past(transaction, gated_rows(gated, transaction.now)))
    hints = job_hints(drafts)
    note_queues(transaction, {hint.queue for hint in hints}, known_queues)
    transaction.tell(hints)
    if stored == len(drafts):
        return [draft.id for draft in drafts]
    return [_answer(transaction, draft) for draft in drafts]


def _not_past(transaction: Transaction, rows: list[Row]) -> list[Row]:
    """Without those that came back after they had been finished: their ids would start all over."""
    if not rows or not transaction.value("past_between", (min(map(_id, rows)), max(map(_id, rows)))):
        return rows
    return [row for row in rows if not transaction.value("is_past", row[:1])]


def _answer(transaction: Transaction, draft: JobDraft) -> UUID:
    if draft.unique_key is None or transaction.value("is_stored", (draft.id.bytes,)):
        return draft.id
    holder = transaction.one("holder_of_key", (draft.tenant, draft.unique_key))
    assert holder is not None  # the insert was refused because of it, in this very transaction
    return uuid_of(holder[0])


def note_queues(transaction: Transaction, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            transaction.change("add_queue", (name,))
            transaction.queues.add(name)


def job_hints(drafts: Iterable[JobDraft]) -> list[JobHint]:
    """One per lane, with its earliest due time."""
    earliest: dict[tuple[str, int], Micros] = {}
    for queue, priority, due_at in map(_lane_and_due, drafts):
        lane = (queue, priority)
        if due_at < earliest.setdefault(lane, due_at):
            earliest[lane] = due_at
    return [JobHint(queue, priority, due_at) for (queue, priority), due_at in earliest.items()]


def get(session: Session, tenant: str, job_id: UUID) -> Job | None:
    key = (tenant, job_id.bytes)
    row = session.one("get_live", key) or session.one("get_past", key)
    return None if row is None else job_of(row)


def attempts(session: Session, job_id: UUID) -> list[Attempt]:
    return [attempt_of(job_id, row) for row in session.all("list_attempts", (job_id.bytes,))]


def count(session: Session, now: Micros) -> list[QueueCount]:
    counts: dict[str, list[int]] = {}
    for statement in ("count_pending", "count_exclusive", "count_gated", "count_waiting", "count_running"):
        for queue, *numbers in session.all(statement, () if statement == "count_running" else (now,)):
            before = counts.get(queue, [0, 0, 0])
            counts[queue] = [int(known + found) for known, found in zip(before, numbers, strict=True)]
    return [QueueCount(queue, *numbers) for queue, numbers in sorted(counts.items())]


def cancel(transaction: Transaction, tenant: str, job_id: UUID, reason: str) -> CancelReply:
    found = transaction.one("job_state", (tenant, job_id.bytes))
    if found is None:
        past = transaction.one("get_past", (tenant, job_id.bytes))
        return CancelReply.MISSING if past is None else CancelReply.FINAL
    state, node = found
    if state == "running" and node == outside.NODE:
        settling.write(transaction, [outside.cancelled(transaction, job_id, reason)])
        return CancelReply.CANCELLED
    if state == "running":
        transaction.change("request_cancel", (job_id.bytes,))
        transaction.tell([CancelHint(NodeId(node), job_id)])
        return CancelReply.REQUESTED
    end_unstarted(transaction, job_id.bytes, "cancelled", reason)
    tell_freed(transaction)
    return CancelReply.CANCELLED


def end_unstarted(transaction: Transaction, job_id: bytes, state: str, reason: str) -> None:
    transaction.change("end_unstarted", (job_id, state, transaction.now, reason))
    transaction.change("keep_gate", (job_id,))
    transaction.change("delete_unstarted", (job_id,))
    transaction.ended.append((job_id,))


def change(transaction: Transaction, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None) -> bool:
    moved = transaction.one("change_job", (tenant, job_id.bytes, due_at, priority))
    hints: list[Hint] = [] if moved is None else [JobHint(*moved)]
    transaction.tell(hints)
    return moved is not None


def revive(transaction: Transaction, tenant: str, job_id: UUID, draft: JobDraft, known_queues: Collection[str]) -> bool:
    if not discard(transaction, tenant, job_id, "retried"):
        return bool(transaction.value("revived_before", (tenant, job_id.bytes, draft.id.bytes)))
    [stored] = add(transaction, [draft], known_queues)
    if stored != draft.id:
        raise Conflict(f"job {stored} holds the unique key {draft.unique_key!r}: wait for it to finish, or cancel it")
    return True


def discard(transaction: Transaction, tenant: str, job_id: UUID, disposition: str = "discarded") -> bool:
    return transaction.change("dispose_job", (tenant, job_id.bytes, disposition)) == 1

"""Jobs handed over to a worker outside, and their deadlines."""

from __future__ import annotations

from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.settle import Settlement
from duetime.stores.handover import cancellation
from duetime.stores.sqlite.session import Row, Session, Transaction

NODE = 0  # what the file says of their node: no node has this number


def hand_over(transaction: Transaction, decision: Settlement) -> bool:
    """False when it does not run under this attempt number."""
    parameters = (decision.id.bytes, decision.attempt, decision.due_at, decision.failures, decision.losses)
    return transaction.change("hand_over", parameters) == 1 or is_outside(transaction, decision)


def is_outside(session: Session, decision: Settlement) -> bool:
    return bool(session.value("is_outside", (decision.id.bytes, decision.attempt)))


def extend(transaction: Transaction, job_id: UUID, attempt: int, due_at: Micros) -> bool:
    return transaction.change("extend", (job_id.bytes, attempt, due_at)) == 1


def overdue(session: Session, now: Micros, limit: int) -> list[Row]:
    return session.all("overdue", (now, limit))


def cancelled(transaction: Transaction, job_id: UUID, reason: str) -> Settlement:
    """How one that was handed over ends, if nobody wants it any more."""
    row = transaction.one("outside_job", (job_id.bytes,))
    assert row is not None
    attempt, due_at, failures, losses = row
    return cancellation(job_id, attempt, due_at, failures, losses, transaction.now, reason)

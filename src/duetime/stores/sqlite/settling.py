"""Writing decisions about running jobs, each only if the job still runs under that attempt."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.model.attempt import Ending
from duetime.model.hint import JobHint
from duetime.model.job import State
from duetime.model.settle import Settlement
from duetime.stores.sqlite import gates, outside, queues
from duetime.stores.sqlite.session import SOON, Row, Transaction

_PENDING, _RUNNING = State.PENDING, State.RUNNING


def settle(transaction: Transaction, settlements: Sequence[Settlement]) -> list[UUID]:
    """Answers the ids that were refused."""
    written = write(transaction, settlements)
    return [] if written == len(settlements) else [decision.id for decision in settlements if not _was_written(transaction, decision)]


def write(transaction: Transaction, settlements: Sequence[Settlement]) -> int:
    """Answers how many of these jobs still ran under that attempt; the others are left alone."""
    [(exclusive, gated, limited)] = transaction.all("settle_with_care")
    if limited:
        queues.tell_freed(transaction, [(each.id.bytes, each.attempt) for each in settlements if each.state is not _RUNNING])
    transaction.change_many("record_attempt", [_attempt_row(decision) for decision in settlements if _ended_badly(decision)])
    final = [_final_row(decision) for decision in settlements if decision.state is not _PENDING and decision.state is not _RUNNING]
    written = transaction.change_many("settle_final", final)
    freed = _delete(transaction, [row[:2] for row in final], gated)
    moved = [row for decision in settlements if decision.state is _PENDING for row in _try_again(transaction, decision)]
    written += sum(outside.hand_over(transaction, decision) for decision in settlements if decision.state is _RUNNING)
    transaction.ended += final
    if final and exclusive:
        _tell_freed(transaction)
    if gated:
        gates.tell_freed(transaction, [*freed, *(gate for *_, gate in moved if gate is not None)])
    return written + len(moved)


def tell_freed(transaction: Transaction) -> None:
    """Whoever waited for the end of an earlier job of its schedule may have a chance now."""
    if transaction.value("any_exclusive"):
        _tell_freed(transaction)


def _tell_freed(transaction: Transaction) -> None:
    transaction.tell([JobHint(*row) for row in transaction.all("freed", (transaction.now + SOON,))])


def _delete(transaction: Transaction, final: list[Row], gated: bool) -> list[str]:
    """Answers the gates they held; history does not know them."""
    if not gated:
        transaction.change_many("settle_delete", final)
        return []
    held = [row for row in transaction.all_many("settle_delete_gated", final) if row[1] is not None]
    transaction.change_many("keep_gates", held)
    return [gate for _, gate in held]


def _try_again(transaction: Transaction, decision: Settlement) -> list[Row]:
    """Answers lane, due time and gate of the job, if it ran under that attempt."""
    parameters = (decision.id.bytes, decision.attempt, decision.due_at, decision.failures, decision.losses, decision.error)
    moved = transaction.all("settle_again", parameters)
    transaction.tell([JobHint(*row[:3]) for row in moved])
    return moved


def _was_written(transaction: Transaction, decision: Settlement) -> bool:
    """The same decision again, after its reply was lost."""
    if decision.state is _RUNNING:
        return outside.is_outside(transaction, decision)
    return bool(transaction.value("was_settled", (decision.id.bytes, decision.attempt, str(decision.state), decision.due_at)))


def _ended_badly(decision: Settlement) -> bool:
    """An attempt that never started and was given back is not worth a line; one that was handed over has not ended."""
    if decision.ending is Ending.SUCCEEDED or decision.state is _RUNNING:
        return False
    return not (decision.ending is Ending.RELEASED and decision.started_at is None)


def _attempt_row(decision: Settlement) -> Row:
    return decision.id.bytes, decision.attempt, str(decision.ending), decision.started_at, decision.finished_at, decision.error


def _final_row(decision: Settlement) -> Row:
    identity, attempt, state, _, failures, losses, _, started_at, finished_at, result, error = decision
    # Plain text and bytearray: why, says `batch`.
    return bytearray(identity.int.to_bytes(16, "big")), attempt, state._value_, failures, losses, started_at, finished_at, result, error

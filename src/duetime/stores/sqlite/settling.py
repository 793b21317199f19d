"""Writing decisions about running jobs, each only if the job still runs under that attempt."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.model.attempt import Ending
from duetime.model.job import State
from duetime.model.settle import Settlement
from duetime.store import JobHint
from duetime.stores.sqlite.session import SOON, Row, Transaction


def settle(transaction: Transaction, settlements: Sequence[Settlement]) -> list[UUID]:
    """Answers the ids that were refused."""
    transaction.change_many("record_attempt", [_attempt_row(decision) for decision in settlements if _ended_badly(decision)])
    final = [_final_row(decision) for decision in settlements if decision.state is not State.PENDING]
    written = transaction.change_many("settle_final", final)
    transaction.change_many("settle_delete", [row[:2] for row in final])
    written += sum(_try_again(transaction, decision) for decision in settlements if decision.state is State.PENDING)
    if final:
        tell_freed(transaction)
    return [] if written == len(settlements) else [decision.id for decision in settlements if not _was_written(transaction, decision)]


def tell_freed(transaction: Transaction) -> None:
    """Whoever waited for the end of an earlier job of its schedule may have a chance now."""
    if transaction.value("any_exclusive"):
        transaction.tell([JobHint(*row) for row in transaction.all("freed", (transaction.now + SOON,))])


def _try_again(transaction: Transaction, decision: Settlement) -> int:
    parameters = (decision.id.bytes, decision.attempt, decision.due_at, decision.failures, decision.losses, decision.error)
    moved = transaction.one("settle_again", parameters)
    transaction.tell([] if moved is None else [JobHint(*moved)])
    return 0 if moved is None else 1


def _was_written(transaction: Transaction, decision: Settlement) -> bool:
    """The same decision again, after its reply was lost."""
    return bool(transaction.value("was_settled", (decision.id.bytes, decision.attempt, str(decision.state), decision.due_at)))


def _ended_badly(decision: Settlement) -> bool:
    """An attempt that never started and was given back is not worth a line."""
    return decision.ending is not Ending.SUCCEEDED and not (decision.ending is Ending.RELEASED and decision.started_at is None)


def _attempt_row(decision: Settlement) -> Row:
    return decision.id.bytes, decision.attempt, str(decision.ending), decision.started_at, decision.finished_at, decision.error


def _final_row(decision: Settlement) -> Row:
    identity, attempt, state, _, failures, losses, _, started_at, finished_at, result, error = decision
    # Plain text and bytearray: why, says `batch`.
    return bytearray(identity.int.to_bytes(16, "big")), attempt, state._value_, failures, losses, started_at, finished_at, result, error

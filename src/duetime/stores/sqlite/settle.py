"""Writing decisions about running jobs, each only if the job still runs under that attempt number."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.model.hint import JobHint
from duetime.model.job import Ending, State
from duetime.model.settle import Settlement
from duetime.store import Successors
from duetime.stores.sqlite import limits
from duetime.stores.sqlite.queues import QueueLimits
from duetime.stores.sqlite.session import Row, SqliteTransaction

_PENDING, _RUNNING = State.PENDING, State.RUNNING


def settle(
    transaction: SqliteTransaction, settlements: Sequence[Settlement], successors: Successors | None
) -> tuple[list[UUID], list[Row]]:
    """Returns the ids that were refused, and rows of the successors for `claimed_of`."""
    written, started = write(transaction, settlements, successors)
    if written == len(settlements):
        return [], started
    return [decision.id for decision in settlements if not _was_written(transaction, decision)], started


def write(
    transaction: SqliteTransaction, settlements: Sequence[Settlement], successors: Successors | None = None
) -> tuple[int, list[Row]]:
    """Returns how many of these jobs still ran under that attempt number, and the successors; other jobs are
    left alone."""
    [(waiting, limited)] = transaction.all("frees_permits")
    ending = _ending(transaction, settlements) if waiting or limited else []
    transaction.change_many(
        "record_attempt", [_attempt_row(decision) for decision in settlements if _is_recorded(decision)]
    )
    final = [
        _final_row(decision)
        for decision in settlements
        if decision.state is not _PENDING and decision.state is not _RUNNING
    ]
    written = transaction.change_many("settle_final", final)
    transaction.change_many("settle_delete", [row[:2] for row in final])
    transaction.ended += final
    for decision in settlements:
        if decision.state is _PENDING:
            written += _send_back(transaction, decision)
        elif decision.state is _RUNNING:
            parameters = (
                decision.id.bytes,
                decision.attempt,
                decision.due_at,
                decision.failures,
                decision.losses,
            )
            written += transaction.change("settle_external", parameters)
    if not ending:
        return written, []
    queues = QueueLimits(transaction, transaction.now)
    limited_queues = {name for name, use in queues.in_use.items() if use.queue.max_running is not None}
    transaction.tell(
        [
            JobHint(queue, priority, transaction.now, tenant)
            for queue, priority, tenant in {job[5:] for job in ending if job.queue in limited_queues}
        ]
    )
    passed = limits.PassOn(transaction, successors, queues.paused | queues.in_use.keys()) if waiting else None
    return written, passed.run(ending, {bytes(row[0]) for row in final}) if passed else []


def _ending(transaction: SqliteTransaction, settlements: Sequence[Settlement]) -> list[limits.StoppedJob]:
    stopped = [
        (decision.id.bytes, decision.attempt) for decision in settlements if decision.state is not _RUNNING
    ]
    return [
        limits.StoppedJob._make(row) for row in transaction.all_many("ending", list(dict.fromkeys(stopped)))
    ]


def _send_back(transaction: SqliteTransaction, decision: Settlement) -> int:
    parameters = (
        decision.id.bytes,
        decision.attempt,
        decision.due_at,
        decision.failures,
        decision.losses,
        decision.error,
    )
    moved = transaction.all("settle_pending", parameters)
    transaction.tell([JobHint(*row) for row in moved])
    return len(moved)


def _was_written(transaction: SqliteTransaction, decision: Settlement) -> bool:
    """The same decision again, after its reply was lost."""
    return bool(
        transaction.value(
            "was_settled", (decision.id.bytes, decision.attempt, str(decision.state), decision.due_at)
        )
    )


def _is_recorded(decision: Settlement) -> bool:
    """Attempts that did not succeed, except those that never started and were released, and those that go on
    externally."""
    if decision.ending is Ending.SUCCEEDED or decision.state is _RUNNING:
        return False
    return not (decision.ending is Ending.RELEASED and decision.started_at is None)


def _attempt_row(decision: Settlement) -> Row:
    return (
        decision.id.bytes,
        decision.attempt,
        str(decision.ending),
        decision.started_at,
        decision.finished_at,
        decision.error,
        decision.result,
    )


def _final_row(decision: Settlement) -> Row:
    identity, attempt, state, _, failures, losses, _, started_at, finished_at, result, error = decision
    # Plain text and bytearray: `batch` explains why.
    return (
        bytearray(identity.int.to_bytes(16, "big")),
        attempt,
        state._value_,
        failures,
        losses,
        started_at,
        finished_at,
        result,
        error,
    )

"""Writing decisions about running jobs, each only if the job still runs under that attempt number."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.model.hint import DoneHint, JobHint
from duetime.model.job import Ending, State
from duetime.model.settle import Settlement
from duetime.store import Successors
from duetime.stores.sql import limits
from duetime.stores.sql.queues import queue_limits
from duetime.stores.sql.rows import uuid_of
from duetime.stores.sql.session import Row, SqlTransaction

_PENDING, _RUNNING = State.PENDING, State.RUNNING


async def settle(
    transaction: SqlTransaction, settlements: Sequence[Settlement], successors: Successors | None
) -> tuple[list[UUID], list[Row]]:
    """Returns the ids that were refused, and rows of the successors for `claimed_of`."""
    written, started = await write(transaction, settlements, successors)
    if written == len(settlements):
        return [], started
    rows = [(one.id.bytes, one.attempt, str(one.state), one.due_at) for one in settlements]
    # The same decision again, after its reply was lost, is not refused.
    answers = await transaction.all_each("was_settled", rows)
    return [one.id for one, (stands,) in zip(settlements, answers, strict=True) if not stands], started


async def write(
    transaction: SqlTransaction, settlements: Sequence[Settlement], successors: Successors | None = None
) -> tuple[int, list[Row]]:
    """Returns how many of these jobs still ran under that attempt number, and the successors; other jobs are
    left alone."""
    [(waiting, limited)] = await transaction.all("frees_permits")
    plain = [] if waiting or limited else [_final_row(one) for one in settlements if _is_plain(one)]
    moved = await transaction.settle_plain(plain) if plain else 0
    transaction.ended += plain
    if moved == len(settlements):
        return moved, []
    if plain and (moved == len(plain) or transaction.serial):
        settlements = [one for one in settlements if not _is_plain(one)]
    ending = await _ending(transaction, settlements)
    with_permits = any(job.permit is not None or job.overlap is not None for job in ending)
    if with_permits and await transaction.lock_permits():
        [(waiting, limited)] = await transaction.all("frees_permits")
    await transaction.change_many(
        "record_attempt", [_attempt_row(decision) for decision in settlements if _is_recorded(decision)]
    )
    final = [
        _final_row(decision)
        for decision in settlements
        if decision.state is not _PENDING and decision.state is not _RUNNING
    ]
    if not transaction.serial:
        found = {(job.id, job.attempt) for job in ending}
        final = [row for row in final if (bytes(row[0]), row[1]) in found]
    written = moved + await transaction.change_many("settle_final", final)
    await transaction.change_many("settle_delete", [row[:2] for row in final])
    transaction.ended += final
    for decision in settlements:
        if decision.state is _PENDING:
            written += await _send_back(transaction, decision)
        elif decision.state is _RUNNING:
            parameters = (
                decision.id.bytes,
                decision.attempt,
                decision.due_at,
                decision.failures,
                decision.losses,
            )
            written += await transaction.change("settle_external", parameters)
    if not ending:
        return written, []
    gone = {bytes(row[0]) for row in final}
    transaction.tell([DoneHint(uuid_of(job.id)) for job in ending if job.awaited and job.id in gone])
    if not waiting and not limited:
        return written, []
    queues = await queue_limits(transaction, transaction.now)
    limited_queues = {name for name, use in queues.in_use.items() if use.queue.max_running is not None}
    transaction.tell(
        [
            JobHint(queue, priority, transaction.now, tenant)
            for queue, priority, tenant in {job[5:8] for job in ending if job.queue in limited_queues}
        ]
    )
    passed = limits.PassOn(transaction, successors, queues.paused | queues.in_use.keys()) if waiting else None
    return written, await passed.run(ending, gone) if passed else []


async def _ending(transaction: SqlTransaction, settlements: Sequence[Settlement]) -> list[limits.StoppedJob]:
    """Those that still run under these attempt numbers."""
    stopped = dict.fromkeys(_attempts([one for one in settlements if one.state is not _RUNNING]))
    rows = await transaction.all_many("ending", list(stopped))
    return [job for job in map(limits.StoppedJob._make, rows) if (job.id, job.attempt) in stopped]


def _attempts(settlements: Sequence[Settlement]) -> list[tuple[bytes, int]]:
    return [(one.id.bytes, one.attempt) for one in settlements]


async def _send_back(transaction: SqlTransaction, decision: Settlement) -> int:
    parameters = (
        decision.id.bytes,
        decision.attempt,
        decision.due_at,
        decision.failures,
        decision.losses,
        decision.error,
    )
    moved = await transaction.all("settle_pending", parameters)
    transaction.tell([JobHint(*row) for row in moved])
    return len(moved)


def _is_plain(decision: Settlement) -> bool:
    """Nearly all jobs end so, and where no job waits for a permit nothing more follows from it."""
    return decision.state is State.SUCCEEDED and decision.ending is Ending.SUCCEEDED


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

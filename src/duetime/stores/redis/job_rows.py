"""Jobs as callers read them and as a copy writes them, and attempts. `lua/rows.lua` describes the rows."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from struct import Struct
from typing import Any
from uuid import UUID

from duetime.model import codec
from duetime.model.job import Attempt, Ending, Job, JobDraft, State
from duetime.model.stored import JobRow
from duetime.stores.redis.rows import (
    BEGUN,
    CANCEL,
    COUNTS,
    RUN,
    STATE_CODES,
    STATES,
    LiveRow,
    optional,
    pairs,
    row_rest,
    uuid_of,
)

DISPOSITIONS = (None, "retried", "discarded")
_END = Struct(">BBqqII")  # state, disposition, started_at, finished_at, failures, losses
_LONG = Struct(">I")
_NONE = -1
_DRAFT = len(JobDraft._fields)
_attempt_values = attrgetter(*(field.name for field in fields(Attempt)))
_job_values = attrgetter(*(field.name for field in fields(Job)))


def live_row(job: JobRow) -> bytes:
    """The live row of a stored job; also the part of a past row."""
    counts = COUNTS.pack(job.attempt - (job.state is State.RUNNING), job.failures, job.losses, job.created_at)
    rest = row_rest(JobDraft._make(job[:_DRAFT]))
    return counts + bytes((rest[0] + CANCEL * job.cancel_requested + BEGUN * job.begun,)) + rest[1:]


def run_record(job: JobRow) -> bytes:
    permit = b"" if job.permit is None else job.permit.bytes
    return RUN.pack(job.attempt, job.node or 0, job.claimed_at) + permit


def past_row(job: JobRow) -> bytes:
    assert job.finished_at is not None
    result, error = optional(job.result), optional(None if job.error is None else job.error.encode())
    instants = (_NONE if job.started_at is None else job.started_at, job.finished_at)
    claimed_at = _NONE if job.claimed_at is None else job.claimed_at
    code, disposition = STATE_CODES[job.state], DISPOSITIONS.index(job.disposition)
    end = end_of(code, disposition, *instants, job.failures, job.losses, result, error)
    return end + RUN.pack(job.attempt, job.node or 0, claimed_at) + live_row(job)


def end_of(
    state: int,
    disposition: int,
    started_at: int,
    finished_at: int,
    failures: int,
    losses: int,
    result: bytes,
    error: bytes,
) -> bytes:
    """The end in a past row; result and error are `optional`."""
    end = _END.pack(state, disposition, started_at, finished_at, failures, losses)
    return end + end_tail(result, error)


def end_tail(result: bytes, error: bytes) -> bytes:
    return _LONG.pack(len(result)) + result + _LONG.pack(len(error)) + error


def job_row_of(
    job: list[Any], waits_for: bytes | None, attempts: list[bytes], markers: list[bytes]
) -> JobRow:
    """From what `read_job_rows.lua` returns."""
    found, live, run = job_of(job), job[1], job[3]
    begun = live is not None and live[COUNTS.size] & BEGUN > 0
    permit = uuid_of(run[RUN.size :]) if run is not None and len(run) > RUN.size else None
    row = JobRow._make(
        (
            *_job_values(found),
            begun,
            None if waits_for is None else waits_for.decode(),
            permit,
            tuple(attempt_of(found.id, row) for row in attempts),
            tuple(sorted((key.decode(), uuid_of(nonce)) for key, nonce in pairs(markers))),
        )
    )
    return row if found.state.final else row._replace(started_at=None)  # of a running job it is a guess


def job_of(reply: list[Any]) -> Job:
    """From what `read_job` in `rows.lua` returns."""
    job_id, live, past, run, checkpoint, progress, error = reply
    if past is not None:
        return _past_job(job_id, past, checkpoint, progress)
    row = LiveRow(live)
    attempt, node, claimed_at = (row.attempt, 0, None) if run is None else RUN.unpack_from(run)
    return _job(
        job_id,
        row,
        state=State.PENDING if run is None else State.RUNNING,
        attempt=attempt,
        node=node or None,
        checkpoint=checkpoint,
        progress=progress,
        claimed_at=claimed_at,
        started_at=None,
        finished_at=None,
        result=None,
        error=None if error is None else error.decode(),
        disposition=None,
    )


def _past_job(job_id: bytes, past: bytes, checkpoint: bytes | None, progress: bytes | None) -> Job:
    state, disposition, started_at, finished_at, failures, losses = _END.unpack_from(past)
    result, at = _read_long(past, _END.size)
    error, at = _read_long(past, at)
    attempt, node, claimed_at = RUN.unpack_from(past, at)
    row = LiveRow(past[at + RUN.size :])
    row.failures, row.losses = failures, losses
    return _job(
        job_id,
        row,
        state=STATES[state],
        attempt=attempt,
        node=node or None,
        checkpoint=checkpoint,
        progress=progress,
        claimed_at=_instant(claimed_at),
        started_at=_instant(started_at),
        finished_at=finished_at,
        result=result[1:] if result else None,
        error=error[1:].decode() if error else None,
        disposition=DISPOSITIONS[disposition],
    )


def _job(job_id: bytes, row: LiveRow, **state: Any) -> Job:
    return Job(
        id=uuid_of(job_id),
        tenant=row.names.tenant,
        schedule_id=row.names.schedule_id,
        schedule=row.names.schedule,
        fire_time=row.fire_time,
        due_at=row.due_at,
        queue=row.names.queue,
        priority=row.names.priority,
        overlap=row.overlap,
        target=row.names.target,
        target_spec=row.target_spec,
        payload=row.payload,
        policies=row.policies,
        owner=row.owner,
        labels=row.labels,
        unique_key=row.names.unique_key,
        retry_of=row.retry_of,
        limit_key=row.names.limit_key,
        failures=row.failures,
        losses=row.losses,
        cancel_requested=bool(row.flags & CANCEL),
        created_at=row.created_at,
        **state,
    )


def _read_long(row: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _LONG.unpack_from(row, at)
    end = at + 4 + length
    return row[at + 4 : end], end


def _instant(value: int) -> int | None:
    return None if value < 0 else value


# -- attempts: the node, which the server adds, then a part that only Python reads
def attempt_rest(
    attempt: int,
    ending: Ending,
    started_at: int | None,
    finished_at: int,
    error: str | None,
    result: bytes | None,
) -> bytes:
    return codec.pack((attempt, str(ending), started_at, finished_at, error, result))


def attempt_row(attempt: Attempt) -> bytes:
    _, number, node, *rest = _attempt_values(attempt)
    return _LONG.pack(node or 0) + attempt_rest(number, *rest)


def attempt_of(job_id: UUID, row: bytes) -> Attempt:
    (node,) = _LONG.unpack_from(row)
    attempt, ending, started_at, finished_at, error, result = codec.unpack(row[4:])
    return Attempt(job_id, attempt, node or None, Ending(ending), started_at, finished_at, error, result)

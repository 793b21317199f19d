"""Between rows and the model: UUIDs are 16 bytes in the file, enums are text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID, SafeUUID

from duetime.model import codec
from duetime.model import when as whens
from duetime.model.instant import Micros
from duetime.model.job import Attempt, Claimed, Ending, Job, JobDraft, State
from duetime.model.lease import Node, NodeId
from duetime.model.limit import Rate
from duetime.model.permits import Candidate
from duetime.model.schedule import Change, Missed, Schedule, ScheduleDraft, ScheduleVersion
from duetime.model.when import When
from duetime.stores.sql.session import Row

_DEFINITION = 19  # columns of a schedule's definition
_new, _set, _unknown, _int = object.__new__, object.__setattr__, SafeUUID.unknown, int.from_bytes


def uuid_of(data: bytes) -> UUID:
    """uuid.UUID(bytes=...) checks what the schema guarantees and costs three times as much, for every job
    claimed."""
    made = _new(UUID)
    _set(made, "int", _int(data, "big"))
    _set(made, "is_safe", _unknown)
    return made


def draft_rows(drafts: Iterable[JobDraft], now: Micros, waiting: Mapping[UUID, str]) -> list[Row]:
    """Parameters of `add_job`; `batch` explains the bytearrays."""
    return [
        (
            bytearray(draft[0].int.to_bytes(16, "big")),
            draft[1],
            None if draft[2] is None else bytearray(draft[2].bytes),
            *draft[3:11],
            bytearray(draft[11]),
            *draft[12:16],
            None if draft[16] is None else bytearray(draft[16].bytes),
            draft[17],
            now,
            waiting.get(draft[0]) if waiting else None,
        )
        for draft in drafts
    ]


def claimed_of(row: Row) -> Claimed:
    schedule_id, permit = row[11], row[20]
    schedule_id = None if schedule_id is None else uuid_of(schedule_id)
    permit = None if permit is None else uuid_of(permit)
    return Claimed._make(
        (uuid_of(row[0]), *row[1:10], row[10] == 1, schedule_id, *row[12:18], row[18] == 1, row[19], permit)
    )


def candidate_of(row: Row) -> Candidate:
    return Candidate._make((uuid_of(row[0]), *row[1:8], maybe_uuid(row[8]), *row[9:]))


def plain_candidate_of(row: Row) -> Candidate:
    """From a row of `claimable`."""
    _, job_id, attempt, target, _, due_at, queue, priority, fire_time, _, _, _, schedule_id, *rest = row
    lane, tenant = (queue, priority, due_at), rest[5]
    return Candidate(
        uuid_of(job_id), *lane, fire_time, attempt - 1, target, None, maybe_uuid(schedule_id), None, tenant
    )


def job_of(row: Row) -> Job:
    draft = (uuid_of(row[0]), row[1], maybe_uuid(row[2]), *row[3:16], maybe_uuid(row[16]), row[17])
    # Node 0 stands for an external worker.
    progress: Row = (State(row[18]), *row[19:22], row[22] or None, row[23] == 1, *row[24:])
    return Job(*draft, *progress)


def attempt_of(job_id: UUID, row: Row) -> Attempt:
    number, node, ending, *rest = row
    return Attempt(job_id, number, node or None, Ending(ending), *rest)


def node_of(row: Row) -> Node:
    number, name, roles, version, started_at, lease_until, dead, has_left, running = row
    return Node(
        NodeId(number), name, tuple(codec.decode(roles)), version, started_at, lease_until, dead == 1,
        has_left == 1, running,
    )  # fmt: skip


def rate_of(count: int | None, period: Micros | None) -> Rate | None:
    return None if count is None or period is None else Rate(count, period)


def definition_row(draft: ScheduleDraft) -> Row:
    """The columns of a schedule's definition."""
    return (
        draft.id.bytes,
        draft.tenant,
        draft.name,
        text_of(whens.to_json(draft.when)),
        draft.target,
        draft.target_spec,
        draft.payload,
        draft.policies,
        draft.queue,
        draft.priority,
        draft.overlap,
        text_of(draft.missed.to_json()),
        draft.jitter,
        draft.start_at,
        draft.end_at,
        draft.max_runs,
        draft.owner,
        draft.labels,
        draft.limit_key,
    )


def schedule_of(row: Row) -> Schedule:
    draft, (_, version, segment, paused, *rest) = _definition_of(row), row[_DEFINITION:]
    return Schedule(draft, draft.id, version, segment, paused == 1, *rest)


def version_of(row: Row) -> ScheduleVersion:
    version, paused, at, author, change = row[_DEFINITION:]
    return ScheduleVersion(version, at, author, Change(change), paused == 1, _definition_of(row))


def text_of(value: Any) -> str:
    """As JSON text, which SQLite's own functions and people can read."""
    return codec.encode(value).decode()


def _definition_of(row: Row) -> ScheduleDraft:
    fields: Row = (
        uuid_of(row[0]),
        row[1],
        row[2],
        _when(row[3]),
        *row[4:11],
        _missed(row[11]),
        *row[12:_DEFINITION],
    )
    return ScheduleDraft(*fields)


@lru_cache(maxsize=8_192)
def _when(text: str) -> When:
    return whens.restore(codec.decode(text))


@lru_cache(maxsize=256)
def _missed(text: str) -> Missed:
    return Missed.restore(codec.decode(text))


def maybe_uuid(data: bytes | None) -> UUID | None:
    return None if data is None else uuid_of(data)

"""Between rows and the model: UUIDs are 16 bytes in the file, enums are text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID, SafeUUID

from duetime.model import codec
from duetime.model import when as whens
from duetime.model.attempt import Attempt, Ending
from duetime.model.instant import Micros
from duetime.model.job import Claimed, Job, JobDraft, State
from duetime.model.lease import Lease, Node, NodeId
from duetime.model.schedule import Change, Missed, Schedule, ScheduleDraft, ScheduleVersion
from duetime.model.when import When
from duetime.stores.sqlite.session import Row

# Pending jobs with a gate have states of their own in the file.
STATES = {**{str(state): state for state in State}, "gated": State.PENDING, "waiting": State.PENDING}
_new, _set, _unknown, _int = object.__new__, object.__setattr__, SafeUUID.unknown, int.from_bytes


def uuid_of(data: bytes) -> UUID:
    """uuid.UUID(bytes=...) checks what the schema guarantees and costs three times as much, for every job claimed."""
    made = _new(UUID)
    _set(made, "int", _int(data, "big"))
    _set(made, "is_safe", _unknown)
    return made


def draft_rows(drafts: Iterable[JobDraft], now: Micros) -> list[Row]:
    """Parameters of `add_job`; why bytearray, says `batch`."""
    return [
        (
            bytearray(draft[0].int.to_bytes(16, "big")),
            draft[1],
            None if draft[2] is None else bytearray(draft[2].bytes),
            *draft[3:11],
            bytearray(draft[11]),
            *draft[12:16],
            None if draft[16] is None else bytearray(draft[16].bytes),
            now,
        )
        for draft in drafts
    ]


def gated_rows(drafts: Sequence[JobDraft], now: Micros) -> list[Row]:
    """Parameters of `add_gated_job`."""
    return [(*row, draft.gate, _gated_state(draft, now)) for draft, row in zip(drafts, draft_rows(drafts, now), strict=True)]


def _gated_state(draft: JobDraft, now: Micros) -> str:
    """Why, says the second migration."""
    if draft.overlap is not None:
        return "pending"
    return "waiting" if draft.due_at <= now else "gated"


def claimed_of(row: Row) -> Claimed:
    schedule_id = row[11]
    schedule_id = None if schedule_id is None else uuid_of(schedule_id)
    return Claimed._make((uuid_of(row[0]), *row[1:10], row[10] == 1, schedule_id, *row[12:18], row[18] == 1, row[19]))


def job_of(row: Row) -> Job:
    draft = (uuid_of(row[0]), row[1], _maybe_uuid(row[2]), *row[3:16], _maybe_uuid(row[16]), row[17])
    # Node 0 is no node: the job was handed over.
    progress: Row = (STATES[row[18]], *row[19:22], row[22] or None, row[23] == 1, *row[24:])
    return Job(*draft, *progress)


def attempt_of(job_id: UUID, row: Row) -> Attempt:
    number, node, ending, started_at, finished_at, error = row
    return Attempt(job_id, number, node or None, Ending(ending), started_at, finished_at, error)


def node_of(row: Row) -> Node:
    number, name, roles, version, started_at, lease_until, dead, running = row
    return Node(NodeId(number), name, tuple(codec.decode(roles)), version, started_at, lease_until, dead == 1, running)


def lease_of(row: Row) -> Lease:
    name, holder, token, expires_at = row
    return Lease(name, holder, token, expires_at)


def schedule_row(draft: ScheduleDraft, segment: int, next_fire_time: Micros | None, now: Micros) -> Row:
    """Parameters of `insert_schedule` and `replace_schedule`."""
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
        draft.gate,
        segment,
        next_fire_time,
        now,
    )


def schedule_of(row: Row) -> Schedule:
    identity = uuid_of(row[0])
    fires_when, target, target_spec, payload, policies, queue, priority, overlap, missed, *rest = row[12:]
    what = (target, target_spec, payload, policies, queue, priority, overlap)
    draft = ScheduleDraft(identity, row[1], row[2], _when(fires_when), *what, _missed(missed), *rest)
    return Schedule(draft, identity, row[3], row[4], row[5] == 1, *row[6:12])


def version_of(row: Row) -> ScheduleVersion:
    *columns, at, author, change = row
    schedule = schedule_of(tuple(columns))
    return ScheduleVersion(schedule.version, at, author, Change(change), schedule.paused, schedule.draft)


def text_of(value: Any) -> str:
    """As JSON text, which SQLite's own functions and people can read."""
    return codec.encode(value).decode()


@lru_cache(maxsize=8_192)
def _when(text: str) -> When:
    return whens.restore(codec.decode(text))


@lru_cache(maxsize=256)
def _missed(text: str) -> Missed:
    return Missed.from_json(codec.decode(text))


def _maybe_uuid(data: bytes | None) -> UUID | None:
    return None if data is None else uuid_of(data)

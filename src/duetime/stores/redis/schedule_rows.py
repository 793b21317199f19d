"""Rows of schedules as values of the model. `lua/other_rows.lua` describes them."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Any
from uuid import UUID

from duetime.model import codec
from duetime.model import when as whens
from duetime.model.ids import segment_of
from duetime.model.instant import Micros
from duetime.model.schedule import Change, Missed, Schedule, ScheduleDraft, ScheduleVersion
from duetime.model.when import When
from duetime.stores.redis.rows import uuid_of

_ROW = Struct(">qqBqqqq8x")  # version, runs, paused, next_fire_time, last_fire_time, created_at, updated_at
_VERSION = Struct(">qq16sH")  # version, at, id of the schedule, length of author and change
_INSTANT = Struct(">q")
_NONE = -1


def instant(value: Micros | None) -> bytes:
    return _INSTANT.pack(_NONE if value is None else value)


def schedule_name(tenant: str, name: str) -> bytes:
    return f"{tenant}\0{name}\0".encode()


def schedule_rest(draft: ScheduleDraft, pause_note: str | None) -> bytes:
    """The part of a row that only Python reads."""
    fields = (
        draft.tenant,
        draft.name,
        codec.encode(whens.to_json(draft.when)),
        draft.target,
        draft.target_spec,
        draft.payload,
        draft.policies,
        draft.queue,
        draft.priority,
        draft.overlap,
        codec.encode(draft.missed.to_json()),
        draft.jitter,
        draft.start_at,
        draft.end_at,
        draft.max_runs,
        draft.owner,
        draft.labels,
        draft.limit_key,
    )
    return codec.pack((pause_note, *fields))


def schedule_of(identity: bytes, row: bytes) -> Schedule:
    version, runs, paused, cursor, last, created_at, updated_at = _ROW.unpack_from(row)
    note, draft = _read_rest(uuid_of(identity), row[_ROW.size :])
    return Schedule(
        draft,
        draft.id,
        version,
        segment_of(draft.id),
        paused == 1,
        note,
        None if cursor == _NONE else cursor,
        None if last == _NONE else last,
        runs,
        created_at,
        updated_at,
    )


def schedule_row(schedule: Schedule) -> bytes:
    paused, cursor, last = schedule.paused, schedule.next_fire_time, schedule.last_fire_time
    return _ROW.pack(
        schedule.version,
        schedule.runs,
        paused,
        _NONE if cursor is None else cursor,
        _NONE if last is None else last,
        schedule.created_at,
        schedule.updated_at,
    ) + schedule_rest(schedule.draft, schedule.pause_note)


def version_row(version: ScheduleVersion) -> bytes:
    """With its name. Of the schedule itself it keeps the definition and whether it is paused."""
    draft, change = version.draft, codec.pack((version.author, version.change))
    head = _VERSION.pack(version.version, version.at, draft.id.bytes, len(change))
    row = _ROW.pack(version.version, 0, version.paused, _NONE, _NONE, version.at, version.at)
    return schedule_name(draft.tenant, draft.name) + head + change + row + schedule_rest(draft, None)


def version_of(name: bytes, member: bytes) -> ScheduleVersion:
    version, at, identity, length = _VERSION.unpack_from(member, len(name))
    begin = len(name) + _VERSION.size
    author, change = codec.unpack(member[begin : begin + length])
    schedule = schedule_of(identity, member[begin + length :])
    return ScheduleVersion(version, at, author, Change(change), schedule.paused, schedule.draft)


def _read_rest(identity: UUID, rest: bytes) -> tuple[str | None, ScheduleDraft]:
    note, tenant, name, when, *others = codec.unpack(rest)
    fields: list[Any] = [tenant, name, _when(when), *others]
    fields[10] = _missed(fields[10])
    return note, ScheduleDraft(identity, *fields)


@lru_cache(maxsize=8_192)
def _when(text: bytes) -> When:
    return whens.restore(codec.decode(text))


@lru_cache(maxsize=256)
def _missed(text: bytes) -> Missed:
    return Missed.restore(codec.decode(text))

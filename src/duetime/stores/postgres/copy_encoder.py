"""Drafts as rows of COPY, in its binary format.

The driver encodes value by value. In a batch most columns are the same from row to row; encoded once for all
of them, they cost a third. And the server gets the first rows while the last ones are encoded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import islice
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from duetime.model.job import JobDraft
from duetime.stores.postgres.connection import EPOCH_2000

ROWS_PER_CHUNK = 250
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # no flags, no extension
END = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"

_length = Struct(">i").pack
_small_number = Struct(">ih").pack
_instants = Struct(">iqiq").pack
COLUMNS = (*JobDraft._fields, "waits_for")
_ROW_START = len(COLUMNS).to_bytes(2, "big") + _length(
    16
)  # the number of columns, and the size of the first, the id


class _SharedColumns(NamedTuple):
    """The encoded columns that many rows share: between the id and the instants, from there to the payload,
    and after it."""

    head: bytes
    middle: bytes
    tail: bytes


async def encode_in_chunks(drafts: Sequence[JobDraft], waiting: Mapping[UUID, str]) -> AsyncIterator[bytes]:
    """`waiting`: the names that some of them wait for, by id."""
    known: dict[tuple[object, ...], _SharedColumns] = {}
    rest = iter(drafts)
    yield SIGNATURE
    while chunk := _rows(islice(rest, ROWS_PER_CHUNK), known, waiting):
        yield chunk
    yield END


def _rows(
    drafts: Iterable[JobDraft], known: dict[tuple[object, ...], _SharedColumns], waiting: Mapping[UUID, str]
) -> bytes:
    parts: list[bytes] = []
    for draft in drafts:
        (job_id, tenant, schedule_id, schedule, fire_time, due_at, queue, priority, overlap, target,
            target_spec, payload, policies, owner, labels,
            unique_key, retry_of, limit_key) = draft  # fmt: skip
        key = (
            tenant,
            schedule_id,
            schedule,
            queue,
            priority,
            overlap,
            target,
            target_spec,
            policies,
            owner,
            labels,
            unique_key,
            retry_of,
            limit_key,
            waits_for := waiting.get(job_id) if waiting else None,
        )
        head, middle, tail = known.get(key) or known.setdefault(key, _shared(draft, waits_for))
        instants = _instants(8, fire_time - EPOCH_2000, 8, due_at - EPOCH_2000)
        parts += (
            _ROW_START,
            job_id.int.to_bytes(16, "big"),
            head,
            instants,
            middle,
            _length(len(payload)),
            payload,
            tail,
        )
    return b"".join(parts)


def _shared(draft: JobDraft, waits_for: str | None) -> _SharedColumns:
    return _SharedColumns(
        head=_text(draft.tenant) + _id(draft.schedule_id) + _text(draft.schedule),
        middle=b"".join(
            (
                _text(draft.queue),
                _small_number(2, draft.priority),
                _text(draft.overlap),
                _text(draft.target),
                _bytes(draft.target_spec),
            )
        ),
        tail=b"".join(
            (
                _bytes(draft.policies),
                _text(draft.owner),
                _bytes(draft.labels),
                _text(draft.unique_key),
                _id(draft.retry_of),
                _text(draft.limit_key),
                _text(waits_for),
            )
        ),
    )


def _text(value: str | None) -> bytes:
    return _bytes(None if value is None else value.encode())


def _id(value: UUID | None) -> bytes:
    return _bytes(None if value is None else value.bytes)


def _bytes(value: bytes | None) -> bytes:
    return NULL if value is None else _length(len(value)) + value

"""Drafts as rows of COPY, in its binary format.

The driver can write them, too, but value by value. In a batch most columns are alike from row to row; written once for all of them, they
cost a third. And the server has the first rows while the last ones are being written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import islice
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from duetime.model.job import JobDraft
from duetime.stores.postgres.line import EPOCH_2000

ROWS_IN_A_PIECE = 250
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # no flags, no extension
END = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"

_length = Struct(">i").pack
_small_number = Struct(">ih").pack
_instants = Struct(">iqiq").pack
_BEGIN_OF_ROW = len(JobDraft._fields).to_bytes(2, "big") + _length(16)  # how many columns, and the size of the first, the id


class _Alike(NamedTuple):
    """What many rows have in common: the columns between the id and the instants, from there to the payload, and after it."""

    head: bytes
    middle: bytes
    tail: bytes


async def in_pieces(drafts: Sequence[JobDraft]) -> AsyncIterator[bytes]:
    known: dict[tuple[object, ...], _Alike] = {}
    rest = iter(drafts)
    yield SIGNATURE
    while piece := _rows(islice(rest, ROWS_IN_A_PIECE), known):
        yield piece
    yield END


def _rows(drafts: Iterable[JobDraft], known: dict[tuple[object, ...], _Alike]) -> bytes:
    parts: list[bytes] = []
    for draft in drafts:
        (job_id, tenant, schedule_id, schedule, fire_time, due_at, queue, priority, overlap, target, target_spec,
            payload, policies, owner, labels, unique_key, retry_of, gate) = draft  # fmt: skip
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
            gate,
        )
        head, middle, tail = known.get(key) or known.setdefault(key, _alike(draft))
        instants = _instants(8, fire_time - EPOCH_2000, 8, due_at - EPOCH_2000)
        parts += (_BEGIN_OF_ROW, job_id.int.to_bytes(16, "big"), head, instants, middle, _length(len(payload)), payload, tail)
    return b"".join(parts)


def _alike(draft: JobDraft) -> _Alike:
    return _Alike(
        head=_text(draft.tenant) + _id(draft.schedule_id) + _text(draft.schedule),
        middle=b"".join(
            (_text(draft.queue), _small_number(2, draft.priority), _text(draft.overlap), _text(draft.target), _bytes(draft.target_spec))
        ),
        tail=b"".join(
            (
                _bytes(draft.policies),
                _text(draft.owner),
                _bytes(draft.labels),
                _text(draft.unique_key),
                _id(draft.retry_of),
                _text(draft.gate),
            )
        ),
    )


def _text(value: str | None) -> bytes:
    return _bytes(None if value is None else value.encode())


def _id(value: UUID | None) -> bytes:
    return _bytes(None if value is None else value.bytes)


def _bytes(value: bytes | None) -> bytes:
    return NULL if value is None else _length(len(value)) + value

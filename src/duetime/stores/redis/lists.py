"""Lists of jobs by fire time, as `lua/lists.lua` keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from uuid import UUID

from duetime.model.instant import Micros

WIDTH = 18
END = b"\xff"  # after every entry
LIVE, SUCCEEDED, OPEN_DEAD, RESOLVED_DEAD, CANCELLED, SKIPPED = "L", "S", "D", "R", "C", "K"
_LENGTH = Struct(">H")


def list_name(kind: str, tenant: str, schedule: str | None) -> bytes:
    name = kind.encode() + _sized(tenant)
    return name if schedule is None else name + b"\xff\xff" + _sized(schedule)


def _sized(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded


def entry_of(fire_time: Micros, job_id: UUID) -> bytes:
    """Sorts by fire time, then by id, which begins with the milliseconds of the fire time."""
    return job_id.bytes[:6] + _LENGTH.pack(fire_time % 1_000) + job_id.bytes[6:]


def first_entry(fire_time: Micros) -> bytes:
    """Entries of jobs that fire at this instant or later are not smaller."""
    milliseconds, micros = divmod(max(0, fire_time), 1_000)
    return milliseconds.to_bytes(6, "big") + _LENGTH.pack(micros)


def id_of(entry: bytes) -> bytes:
    return entry[:6] + entry[8:]


def entries_of(name: bytes, chunk: bytes) -> Iterator[bytes]:
    for at in range(len(name) + WIDTH, len(chunk), WIDTH):
        yield chunk[at : at + WIDTH]


def bound_of(name: bytes, chunk: bytes) -> bytes:
    return chunk[len(name) : len(name) + WIDTH]

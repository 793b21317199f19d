"""Lists of jobs by fire time, as `lua/lists.lua` keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

WIDTH = 16  # an entry is the id of a job
END = b"\xff"  # after every entry
LIVE, SUCCEEDED, OPEN_DEAD, RESOLVED_DEAD, CANCELLED, SKIPPED = "L", "S", "D", "R", "C", "K"
_LENGTH = Struct(">H")


def list_name(kind: str, tenant: str, schedule: str | None) -> bytes:
    name = kind.encode() + _sized(tenant)
    return name if schedule is None else name + b"\xff\xff" + _sized(schedule)


def _sized(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded


def entries_of(name: bytes, chunk: bytes) -> Iterator[bytes]:
    for at in range(len(name) + WIDTH, len(chunk), WIDTH):
        yield chunk[at : at + WIDTH]


def bound_of(name: bytes, chunk: bytes) -> bytes:
    return chunk[len(name) : len(name) + WIDTH]

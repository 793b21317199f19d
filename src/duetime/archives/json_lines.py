"""One job a line, compressed with gzip: every tool reads it, and so does the standard library."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from uuid import UUID

from duetime.model.codec import decode
from duetime.model.history import job_line
from duetime.model.stored import JobRow

SUFFIX = "jsonl.gz"
LEVEL = 6


def pack(rows: Sequence[JobRow]) -> bytes:
    lines = b"\n".join([*map(job_line, rows), b""])
    return gzip.compress(lines, LEVEL, mtime=0)  # the same jobs make the same file


def ids(data: bytes) -> list[UUID]:
    return [UUID(decode(line)["id"]) for line in gzip.decompress(data).splitlines()]

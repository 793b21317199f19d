"""Jobs as columns, for analytics. Instants are timestamps in UTC; payload, result, labels and target are JSON
text; `day` comes from the name of the folder."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyarrow import parquet

from duetime.model.codec import encode
from duetime.model.history import FORMAT, archived
from duetime.model.instant import SECOND, Micros
from duetime.model.stored import JobRow

SUFFIX = "parquet"
INSTANT = pa.timestamp("us", tz="UTC")
ATTEMPT = pa.struct(
    [
        ("attempt", pa.int32()),
        ("node", pa.int64()),
        ("ending", pa.string()),
        ("started_at", INSTANT),
        ("finished_at", INSTANT),
        ("error", pa.string()),
        ("result", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("tenant", pa.string(), nullable=False),
        pa.field("queue", pa.string(), nullable=False),
        pa.field("priority", pa.int16(), nullable=False),
        pa.field("task", pa.string()),  # none of a job with another target
        pa.field("target", pa.string(), nullable=False),
        pa.field("schedule", pa.string()),
        pa.field("state", pa.string(), nullable=False),
        pa.field("attempt", pa.int32(), nullable=False),
        pa.field("failures", pa.int32(), nullable=False),
        pa.field("losses", pa.int32(), nullable=False),
        pa.field("fire_time", INSTANT, nullable=False),
        pa.field("due_at", INSTANT, nullable=False),
        pa.field("created_at", INSTANT, nullable=False),
        pa.field("claimed_at", INSTANT),
        pa.field("started_at", INSTANT),
        pa.field("finished_at", INSTANT, nullable=False),
        pa.field("wait_seconds", pa.float64()),  # from due to start, of the last attempt
        pa.field("run_seconds", pa.float64()),  # from start to end, of the last attempt
        pa.field("node", pa.int64()),
        pa.field("owner", pa.string()),
        pa.field("unique_key", pa.string()),
        pa.field("limit_key", pa.string()),
        pa.field("retry_of", pa.string()),
        pa.field("disposition", pa.string()),
        pa.field("labels", pa.string()),
        pa.field("payload", pa.string(), nullable=False),
        pa.field("result", pa.string()),
        pa.field("error", pa.string()),
        pa.field("attempts", pa.list_(ATTEMPT), nullable=False),
    ],
    metadata={"duetime.format": str(FORMAT)},
)
# Ids and instants are in order, so only what differs from the one before is written: a third of the size.
ENCODINGS = {
    "id": "DELTA_BYTE_ARRAY",
    "payload": "DELTA_BYTE_ARRAY",
    **{one.name: "DELTA_BINARY_PACKED" for one in SCHEMA if one.type == INSTANT},
}
REPEATING = [one.name for one in SCHEMA if one.name not in ENCODINGS]


def pack(rows: Sequence[JobRow]) -> bytes:
    table = pa.Table.from_pylist([_columns(row) for row in rows], SCHEMA)
    file = BytesIO()
    parquet.write_table(
        table,
        file,
        compression="zstd",
        use_dictionary=REPEATING,
        column_encoding=ENCODINGS,
        write_page_checksum=True,
    )
    return file.getvalue()


def ids(data: bytes) -> list[UUID]:
    table = parquet.read_table(BytesIO(data), page_checksum_verification=True)  # all of it, not only the ids
    return [UUID(text) for text in table.column("id").to_pylist()]


def _columns(row: JobRow) -> dict[str, Any]:
    fields = archived(row, lambda at: at, _text)
    called = fields["target"]
    return fields | {
        "task": called["name"] if called["type"] == "task" else None,
        "target": encode(called).decode(),
        "wait_seconds": _seconds(row.due_at, row.started_at),
        "run_seconds": _seconds(row.started_at, row.finished_at),
    }


def _seconds(start: Micros | None, end: Micros | None) -> float | None:
    return None if start is None or end is None else (end - start) / SECOND


def _text(stored: bytes | None) -> str | None:
    return None if stored is None else stored.decode()

"""Everything in the database as rows, for a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID

from duetime.model.job import State
from duetime.model.permits import KeyUse
from duetime.model.schedule import ScheduleDraft
from duetime.model.stored import JobRow, LimitKeyRow, QueueRow, Record, RowKey, RowKind, StoredRow
from duetime.stores.row_values import KEYS, RowDialect, by_owner, start_of
from duetime.stores.sql.queues import queue_of
from duetime.stores.sql.rows import (
    attempt_of,
    definition_row,
    maybe_uuid,
    node_of,
    schedule_of,
    text_of,
    uuid_of,
    version_of,
)
from duetime.stores.sql.session import Row, SqlSession, SqlTransaction

DEFINITION = tuple("fires_when" if one.name == "when" else one.name for one in fields(ScheduleDraft))
DIALECT = RowDialect(DEFINITION, definition_row, text_of)
STATES = {state.value: state for state in State}


async def read(session: SqlSession, kind: RowKind, after: RowKey | None, limit: int) -> list[StoredRow]:
    page = (*_values(start_of(kind, after)), limit)
    match kind:
        case RowKind.JOBS:
            return list(await _jobs(session, await session.all("read_jobs", page)))
        case RowKind.QUEUES:
            return list(await _queues(session, await session.all("read_queues", page)))
        case RowKind.LIMIT_KEYS:
            rows = await session.all("read_limit_keys", page)
            return [LimitKeyRow(name, KeyUse(0, *use)) for name, *use in rows]
        case RowKind.NODES:
            return [node_of(row) for row in await session.all("read_nodes", page)]
        case RowKind.SCHEDULES:
            return [schedule_of(row) for row in await session.all("read_schedules", page)]
        case RowKind.VERSIONS:
            return [version_of(row) for row in await session.all("read_versions", page)]
        case RowKind.RECORDS:
            return [Record(*row) for row in await session.all("read_records", (*page, await session.time()))]


async def write(
    transaction: SqlTransaction,
    kind: RowKind,
    rows: Sequence[StoredRow],
    after: RowKey | None,
    until: RowKey | None,
) -> None:
    """The database itself raises the counters of ids and versions with the rows."""
    for table, columns in KEYS[kind].items():
        await transaction.delete_range(
            table, columns, after and tuple(_values(after)), until and tuple(_values(until))
        )
    for part in DIALECT.tables(kind, rows):
        await transaction.insert_rows(part.table, part.columns, [_values(row) for row in part.values])


def _values(row: Sequence[Any]) -> list[Any]:
    return [value.bytes if isinstance(value, UUID) else value for value in row]


async def _jobs(session: SqlSession, rows: list[Row]) -> list[JobRow]:
    if not rows:
        return []
    ends = (rows[0][0], rows[-1][0])
    attempts = by_owner((job, (job, *rest)) for job, *rest in await session.all("read_attempts", ends))
    markers = by_owner(
        (job, (key, uuid_of(nonce))) for job, key, nonce in await session.all("read_markers", ends)
    )
    return [
        JobRow._make(
            (
                uuid_of(row[0]),
                row[1],
                maybe_uuid(row[2]),
                *row[3:16],
                maybe_uuid(row[16]),
                row[17],
                STATES[row[18]],
                *row[19:22],
                row[22] or None,  # node 0 stands for an external worker
                row[23] == 1,
                *row[24:33],
                row[33] == 1,
                row[34],
                maybe_uuid(row[35]),
                tuple(attempt_of(uuid_of(job), rest) for job, *rest in attempts.get(row[0], ())),
                markers.get(row[0], ()),
            )
        )
        for row in rows
    ]


async def _queues(session: SqlSession, rows: list[Row]) -> list[QueueRow]:
    if not rows:
        return []
    tenants = by_owner(await session.all("tenants_of_queues", (rows[0][0], rows[-1][0])))
    return [QueueRow(queue_of(row[:-1]), tenants.get(row[0], ()), row[-1]) for row in rows]

"""Everything in the database as rows, for a copy. Rows are written by COPY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import asyncpg

from duetime.errors import Conflict
from duetime.model.instant import SECOND
from duetime.model.job import State
from duetime.model.permits import KeyUse
from duetime.model.schedule import ScheduleDraft
from duetime.model.stored import JobRow, LimitKeyRow, QueueRow, Record, RowKey, RowKind, StoredRow
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.rows import (
    NODE,
    STATE,
    attempt_of,
    definition_of,
    node_of,
    queue_of,
    schedule_of,
    version_of,
)
from duetime.stores.row_values import KEYS, RowDialect, TableRows, Values, by_owner, range_condition, start_of

# `definition` holds the rule and what happens to missed fires.
_OTHERS = [one.name for one in fields(ScheduleDraft) if one.name not in {"when", "missed"}]
STATES = {state.value: state for state in State}
_QUEUE = 10
_DAY = 86_400 * SECOND
_BY_DAY = ("history", "attempts")


def _define(draft: ScheduleDraft) -> Values:
    return (definition_of(draft), *(getattr(draft, name) for name in _OTHERS))


DIALECT = RowDialect(("definition", *_OTHERS), _define, list)


class PostgresRows:
    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections

    async def read(self, kind: RowKind, after: RowKey | None, limit: int) -> list[StoredRow]:
        page = (*start_of(kind, after), limit)
        fetch = self._connections.bulk.fetch
        match kind:
            case RowKind.JOBS:
                return list(await self._jobs(await fetch(SQL["read_jobs"], *page)))
            case RowKind.QUEUES:
                return list(await self._queues(await fetch(SQL["read_queues"], *page)))
            case RowKind.LIMIT_KEYS:
                rows = await fetch(SQL["read_limit_keys"], *page)
                return [LimitKeyRow(name, KeyUse(0, *use)) for name, *use in rows]
            case RowKind.NODES:
                return [node_of(row) for row in await fetch(SQL["read_nodes"], *page)]
            case RowKind.SCHEDULES:
                return [schedule_of(row) for row in await fetch(SQL["read_schedules"], *page)]
            case RowKind.VERSIONS:
                return [version_of(row) for row in await fetch(SQL["read_versions"], *page)]
            case RowKind.RECORDS:
                return [Record(*row) for row in await fetch(SQL["read_records"], *page)]

    async def write(
        self, kind: RowKind, rows: Sequence[StoredRow], after: RowKey | None, until: RowKey | None
    ) -> None:
        async def work(connection: Any, _is_retry: bool) -> None:
            for table, columns in KEYS[kind].items():
                condition, values = range_condition(columns, after, until, "${}")
                await connection.execute(f"DELETE FROM duetime.{table} WHERE {condition}", *values)  # noqa: S608
            for part in DIALECT.tables(kind, rows):
                if part.table in _BY_DAY:
                    await _add_days(connection, part)
                await connection.copy_records_to_table(
                    part.table, schema_name="duetime", columns=part.columns, records=part.values
                )
            await _raise_numbers(connection, kind, rows)

        try:
            await self._connections.bulk.run(work, atomic=True)
        except asyncpg.UniqueViolationError as problem:
            raise Conflict(f"a row outside of the range is in the way ({problem})") from problem

    async def _jobs(self, rows: list[Any]) -> list[JobRow]:
        if not rows:
            return []
        ends = (rows[0]["id"], rows[-1]["id"])
        attempts = by_owner(
            (row["job_id"], attempt_of(row))
            for row in await self._connections.bulk.fetch(SQL["read_attempts"], *ends)
        )
        markers = by_owner(
            (job, (key, nonce))
            for job, key, nonce in await self._connections.bulk.fetch(SQL["read_markers"], *ends)
        )
        return [
            JobRow._make(
                (
                    *row[:STATE],
                    STATES[row[STATE]],
                    *row[STATE + 1 : NODE],
                    row[NODE] or None,  # node 0 stands for an external worker
                    *row[NODE + 1 :],
                    attempts.get(row[0], ()) if attempts else (),
                    markers.get(row[0], ()) if markers else (),
                )
            )
            for row in map(tuple, rows)
        ]

    async def _queues(self, rows: list[Any]) -> list[QueueRow]:
        if not rows:
            return []
        ends = (rows[0]["name"], rows[-1]["name"])
        tenants = by_owner(await self._connections.bulk.fetch(SQL["tenants_of_queues"], *ends))
        return [QueueRow(queue_of(row[:_QUEUE]), tenants.get(row[0], ()), row[_QUEUE]) for row in rows]


async def _raise_numbers(connection: Any, kind: RowKind, rows: Sequence[Any]) -> None:
    if kind is RowKind.NODES and rows:
        await connection.execute(SQL["raise_node_ids"], max(node.id for node in rows))
    if kind is RowKind.RECORDS and rows:
        await connection.execute(SQL["raise_record_versions"], max(record.version for record in rows))


async def _add_days(connection: Any, part: TableRows) -> None:
    """Retention drops whole days."""
    column = part.columns.index("finished_at")
    for day in {row[column] // _DAY * _DAY for row in part.values}:
        await connection.execute(SQL["add_day"], part.table, day)

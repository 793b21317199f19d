"""Retention, and storage for the days ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from duetime.model.instant import Micros
from duetime.stores.postgres.connection import PostgresConnection
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.event_log import trim_old
from duetime.stores.postgres.schema import MAINTENANCE_TIMEOUT, TABLE_LOCK_TIMEOUT, run_persistently

DAYS_AHEAD = 7
ROWS_PER_STATEMENT = 5_000
MAX_ROWS = 100_000  # a call: the rest of a large day goes when the whole day does


async def prune(connections: PostgresConnections, before: Micros, targets: Mapping[str, Micros]) -> int:
    connection = connections.temporary(MAINTENANCE_TIMEOUT)
    try:
        deleted = 0
        for parent in ("history", "attempts"):
            await _change_tables(connection, "add_days", parent, DAYS_AHEAD)
            dropped = await _change_tables(connection, "drop_days", parent, before)
            deleted += dropped if parent == "history" else 0
        deleted += await _prune_rows(connection, before, None)
        for target, horizon in targets.items():
            if horizon > before:
                deleted += await _prune_rows(connection, horizon, target)
        await connection.count(SQL["prune_once_markers"], before, MAX_ROWS)
        await connection.count(SQL["prune_limit_keys"], MAX_ROWS)
        await connection.count(SQL["clear_lowered"])
        await connection.count(SQL["prune_nodes"], before)
        await connection.count(SQL["prune_versions"], before)
        await connection.count(SQL["prune_records"])
        await trim_old(connection)
        return deleted
    finally:
        await connection.close()


async def forget(connections: PostgresConnections, ids: Sequence[UUID]) -> int:
    gone: int = await connections.read.value(SQL["forget_jobs"], list(ids))
    return gone


async def _prune_rows(connection: PostgresConnection, before: Micros, target: str | None) -> int:
    deleted = 0
    while deleted < MAX_ROWS:
        part: int = await connection.value(SQL["prune_jobs"], before, ROWS_PER_STATEMENT, target)
        deleted += part
        if part < ROWS_PER_STATEMENT:
            break
    return deleted


async def _change_tables(connection: PostgresConnection, statement: str, *arguments: Any) -> Any:
    async def work(connection: Any, _is_retry: bool) -> Any:
        await connection.execute(f"SET LOCAL lock_timeout = {TABLE_LOCK_TIMEOUT}")
        return await connection.fetchval(SQL[statement], *arguments)

    return await run_persistently(connection, work)

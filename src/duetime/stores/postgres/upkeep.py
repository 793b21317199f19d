"""Schema versions, retention, and storage for the days ahead."""

from __future__ import annotations

import contextlib
from typing import Any

from duetime.clock import noise, pause
from duetime.errors import SchemaMissing, SchemaTooNew, StoreUnavailable
from duetime.model.instant import Micros
from duetime.store import Migration
from duetime.stores.postgres.line import Line
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.statements import scripts

MIGRATIONS = list(scripts("duetime.stores.postgres", "migrations").values())
MIGRATION_LOCK = 0x6475_6574_696D_65  # "duetime"
DAYS_AHEAD = 7
ROWS_AT_ONCE = 5_000
MOST_ROWS = 100_000  # a call: the rest of a large day goes when the whole day does
MOST_TRIES = 30
PLENTY = 60.0  # seconds: retention and migrations may take their time


async def check_schema(lines: Lines, passing: bool) -> None:
    """On the line for submitting: whoever opens a store mostly wants to, and finds it connected. A twin only needs a passing look."""
    line = lines.passing() if passing else lines.submit
    try:
        version = await line.run(_version, atomic=True)
    finally:
        if passing:
            await line.close()
    if version > len(MIGRATIONS):
        raise SchemaTooNew(f"the database has schema {version}, this Duetime knows {len(MIGRATIONS)}: upgrade Duetime")
    if version < len(MIGRATIONS):
        raise SchemaMissing(f"the database has schema {version}, this Duetime needs {len(MIGRATIONS)}: run `duetime migrate`")


async def migrate(lines: Lines) -> Migration:
    line = lines.passing(PLENTY)
    try:
        before = after = await line.run(_version, atomic=True)
        while after < len(MIGRATIONS):
            after = await _insist(line, _migrate_once)
        if after > len(MIGRATIONS):
            raise SchemaTooNew(f"the database has schema {after}, this Duetime knows {len(MIGRATIONS)}: upgrade Duetime")
        return Migration(before, after)
    finally:
        await line.close()


async def prune(lines: Lines, before: Micros) -> int:
    line = lines.passing(PLENTY)
    try:
        gone = 0
        for parent in ("history", "attempts"):
            await _insist(line, lambda connection, parent=parent: connection.execute(SQL["add_days"], parent, DAYS_AHEAD))
            dropped = await _insist(line, lambda connection, parent=parent: connection.fetchval(SQL["drop_days"], parent, before))
            gone += dropped if parent == "history" else 0
        gone += await _prune_rows(line, before)
        await line.count(SQL["prune_nodes"], before)
        return gone
    finally:
        await line.close()


async def _prune_rows(line: Line, before: Micros) -> int:
    gone = 0
    while gone < MOST_ROWS:
        part = await line.value(SQL["prune_jobs"], before, ROWS_AT_ONCE)
        gone += part
        if part < ROWS_AT_ONCE:
            break
    return gone


async def _insist(line: Line, work: Any) -> Any:
    """Changing tables waits for locks only as long as nobody minds, and tries again: whoever comes behind a waiter waits, too."""
    for _ in range(MOST_TRIES):
        with contextlib.suppress(StoreUnavailable):
            return await line.run(work, atomic=True)
        await pause(0.1 + 0.4 * noise())
    return await line.run(work, atomic=True)


async def _version(connection: Any) -> int:
    """0 when there is no schema at all."""
    if not await connection.fetchval(SQL["has_schema"]):
        return 0
    return int(await connection.fetchval("SELECT max(version) FROM duetime.schema_version") or 0)


async def _migrate_once(connection: Any) -> int:
    """One step, under a lock: whoever comes second finds it done. Killed half-way, it leaves nothing."""
    await connection.execute("SET LOCAL lock_timeout = 2000")
    await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
    version = await _version(connection)
    if version >= len(MIGRATIONS):
        return version
    if version == 0:
        await connection.execute("CREATE SCHEMA IF NOT EXISTS duetime")
        await connection.execute("CREATE TABLE duetime.schema_version (version bigint NOT NULL, applied_at timestamptz NOT NULL)")
    await connection.execute(MIGRATIONS[version])
    await connection.execute("INSERT INTO duetime.schema_version VALUES ($1, clock_timestamp())", version + 1)
    return version + 1

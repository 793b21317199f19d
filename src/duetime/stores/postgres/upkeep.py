"""Schema versions, retention, and storage for the days ahead."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from duetime.clock import noise, pause
from duetime.errors import SchemaMissing, SchemaTooNew, StoreUnavailable
from duetime.model.instant import Micros
from duetime.store import Migration
from duetime.stores.postgres import edges
from duetime.stores.postgres.line import Line
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.statements import scripts

MIGRATIONS = list(scripts("duetime.stores.postgres", "migrations").values())
MIGRATION_LOCK = 0x6475_6574_696D_65  # "duetime"
DAYS_AHEAD = 7
ROWS_AT_ONCE = 5_000
MOST_ROWS = 100_000  # a call: the rest of a large day goes when the whole day does
MOST_TRIES = 120
MILLISECONDS_IN_THE_WAY = 200  # whoever wants a table that is about to be changed waits as long as the change does
PLENTY = 60.0  # seconds: retention and migrations may take their time


class Schema(NamedTuple):
    version: int  # 0 when there is none at all
    home: Micros | None  # when its first version was made: no other database has that


async def check_schema(lines: Lines, passing: bool) -> Schema:
    """On the line for submitting: whoever opens a store mostly wants to, and finds it connected. A twin only needs a passing look."""
    line = lines.passing() if passing else lines.submit
    try:
        schema = await line.run(_schema, atomic=True)
    finally:
        if passing:
            await line.close()
    if schema.version > len(MIGRATIONS):
        raise SchemaTooNew(f"the database has schema {schema.version}, this Duetime knows {len(MIGRATIONS)}: upgrade Duetime")
    if schema.version < len(MIGRATIONS):
        raise SchemaMissing(f"the database has schema {schema.version}, this Duetime needs {len(MIGRATIONS)}: run `duetime migrate`")
    return schema


async def migrate(lines: Lines) -> Migration:
    line = lines.passing(PLENTY)
    try:
        before = after = (await line.run(_schema, atomic=True)).version
        while after < len(MIGRATIONS):
            after = await _insist(line, _migrate_once)
        if after > len(MIGRATIONS):
            raise SchemaTooNew(f"the database has schema {after}, this Duetime knows {len(MIGRATIONS)}: upgrade Duetime")
        return Migration(before, after)
    finally:
        await line.close()


async def prune(lines: Lines, before: Micros, targets: Mapping[str, Micros]) -> int:
    line = lines.passing(PLENTY)
    try:
        gone = 0
        for parent in ("history", "attempts"):
            await _insist(line, lambda connection, parent=parent: _briefly(connection, SQL["add_days"], parent, DAYS_AHEAD))
            dropped = await _insist(line, lambda connection, parent=parent: _briefly(connection, SQL["drop_days"], parent, before))
            gone += dropped if parent == "history" else 0
        gone += await _prune_rows(line, "prune_jobs", before)
        for target, moment in targets.items():
            if moment > before:
                gone += await _prune_rows(line, "prune_target", moment, target)
        await line.count(SQL["prune_marks"], before, MOST_ROWS)
        await line.count(SQL["prune_gates"], MOST_ROWS)
        await line.count(SQL["prune_nodes"], before)
        await line.count(SQL["prune_versions"], before)
        await edges.forget(line)
        return gone
    finally:
        await line.close()


async def _prune_rows(line: Line, statement: str, before: Micros, *more: str) -> int:
    gone = 0
    while gone < MOST_ROWS:
        part = await line.value(SQL[statement], before, ROWS_AT_ONCE, *more)
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


async def _briefly(connection: Any, statement: str, *arguments: Any) -> Any:
    await connection.execute(f"SET LOCAL lock_timeout = {MILLISECONDS_IN_THE_WAY}")
    return await connection.fetchval(statement, *arguments)


async def _schema(connection: Any) -> Schema:
    if not await connection.fetchval(SQL["has_schema"]):
        return Schema(0, None)
    row = await connection.fetchrow(SQL["version"])
    return Schema(row["version"] or 0, row["home"])


async def _migrate_once(connection: Any) -> int:
    """One step, under a lock: whoever comes second finds it done. Killed half-way, it leaves nothing."""
    await connection.execute("SET LOCAL lock_timeout = 2000")
    await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
    version = (await _schema(connection)).version
    if version >= len(MIGRATIONS):
        return version
    if version == 0:
        await connection.execute("CREATE SCHEMA IF NOT EXISTS duetime")
        await connection.execute("CREATE TABLE duetime.schema_version (version bigint NOT NULL, applied_at timestamptz NOT NULL)")
    await connection.execute(f"SET LOCAL lock_timeout = {MILLISECONDS_IN_THE_WAY}")
    await connection.execute(MIGRATIONS[version])
    await connection.execute("INSERT INTO duetime.schema_version VALUES ($1, clock_timestamp())", version + 1)
    return version + 1

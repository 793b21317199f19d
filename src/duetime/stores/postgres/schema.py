"""The version of the schema, and migrations."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from duetime.clock import noise, pause
from duetime.errors import SchemaMissing, StoreUnavailable
from duetime.model.instant import Micros
from duetime.model.migration import (
    Migration,
    NodeVersion,
    SchemaState,
    migration_of,
    refuse_incompatible,
    refuse_old_nodes,
    steps_of,
)
from duetime.stores.postgres.connection import PostgresConnection, Result, Work
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.statements import scripts

MIGRATIONS = list(scripts("duetime.stores.postgres", "migrations").values())
MIGRATION_LOCK = 0x6475_6574_696D_65  # "duetime"
MAX_TRIES = 120
PLACE = "the database"
TABLE_LOCK_TIMEOUT = 200  # milliseconds: other users of a table wait as long as a change of it does
MAINTENANCE_TIMEOUT = 60.0  # seconds


class SchemaInfo(NamedTuple):
    state: SchemaState
    home: Micros | None  # when its first version was made, which no other database shares


async def check_schema(connections: PostgresConnections, temporary: bool) -> SchemaInfo:
    """On the connection for submitting, which most users of a store need next; a clone needs only a temporary
    one."""
    connection = connections.temporary() if temporary else connections.submit
    try:
        schema = await connection.run(_read_schema, atomic=True)
    finally:
        if temporary:
            await connection.close()
    refuse_incompatible(schema.state, len(MIGRATIONS), PLACE)
    if schema.state.version < len(MIGRATIONS):
        raise SchemaMissing(
            f"{PLACE} has schema {schema.state.version}, this Duetime needs {len(MIGRATIONS)}: run "
            "`duetime migrate`, or start with `duetime serve --migrate`"
        )
    return schema


async def migrate(connections: PostgresConnections, dry_run: bool) -> Migration:
    connection = connections.temporary(MAINTENANCE_TIMEOUT)
    try:
        if dry_run:
            return await connection.run(_plan, atomic=True)
        state = (await connection.run(_read_schema, atomic=True)).state
        after = state.version
        while after < len(MIGRATIONS):
            after = await run_persistently(connection, _migrate_once)
        refuse_incompatible(state, len(MIGRATIONS), PLACE)
        return migration_of(MIGRATIONS, state)
    finally:
        await connection.close()


async def _plan(connection: Any, _is_retry: bool) -> Migration:
    state = (await _read_schema(connection)).state
    return migration_of(MIGRATIONS, state, await _living(connection) if state.version else ())


async def _living(connection: Any) -> list[NodeVersion]:
    return [NodeVersion(*row) for row in await connection.fetch(SQL["living_versions"])]


async def run_persistently(connection: PostgresConnection, work: Work[Result]) -> Result:
    """A change of tables waits only briefly for its locks, and tries again: other transactions queue behind a
    waiting change."""
    for _ in range(MAX_TRIES):
        with contextlib.suppress(StoreUnavailable):
            return await connection.run(work, atomic=True)
        await pause(0.1 + 0.4 * noise())
    return await connection.run(work, atomic=True)


async def _read_schema(connection: Any, _is_retry: bool = False) -> SchemaInfo:
    if not await connection.fetchval(SQL["has_schema"]):
        return SchemaInfo(SchemaState(0, 0), None)
    row = await connection.fetchrow(SQL["version"])
    return SchemaInfo(SchemaState(row["version"] or 0, row["compatible_from"] or 0), row["home"])


async def _migrate_once(connection: Any, _is_retry: bool) -> int:
    """One step, under a lock: the second process finds it done. If the process is killed in the middle,
    nothing has changed."""
    await connection.execute("SET LOCAL lock_timeout = 2000")
    await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
    version = (await _read_schema(connection)).state.version
    if version >= len(MIGRATIONS):
        return version
    step = steps_of(MIGRATIONS)[version]
    if version == 0:
        await connection.execute("CREATE SCHEMA IF NOT EXISTS duetime")
        await connection.execute(
            "CREATE TABLE duetime.schema_version (version bigint NOT NULL, applied_at timestamptz NOT NULL, "
            "compatible_from bigint)"
        )
    else:
        refuse_old_nodes(step, await _living(connection))
    await connection.execute(f"SET LOCAL lock_timeout = {TABLE_LOCK_TIMEOUT}")
    await connection.execute(MIGRATIONS[version])
    await connection.execute(
        "INSERT INTO duetime.schema_version VALUES ($1, clock_timestamp(), $2)",
        version + 1,
        step.compatible_from,
    )
    return version + 1

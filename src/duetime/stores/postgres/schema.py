"""The version of the schema, and migrations."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from duetime.clock import noise, pause
from duetime.errors import SchemaMissing, SchemaTooNew, StoreUnavailable
from duetime.model.instant import Micros
from duetime.store import Migration
from duetime.stores.postgres.connection import PostgresConnection, Result, Work
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.statements import scripts

MIGRATIONS = list(scripts("duetime.stores.postgres", "migrations").values())
MIGRATION_LOCK = 0x6475_6574_696D_65  # "duetime"
MAX_TRIES = 120
TABLE_LOCK_TIMEOUT = 200  # milliseconds: other users of a table wait as long as a change of it does
MAINTENANCE_TIMEOUT = 60.0  # seconds


class SchemaInfo(NamedTuple):
    version: int  # 0 when there is none
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
    _refuse_newer(schema.version)
    if schema.version < len(MIGRATIONS):
        raise SchemaMissing(
            f"the database has schema {schema.version}, this Duetime needs {len(MIGRATIONS)}: run "
            "`duetime migrate`, or start with `duetime serve --migrate`"
        )
    return schema


async def migrate(connections: PostgresConnections) -> Migration:
    connection = connections.temporary(MAINTENANCE_TIMEOUT)
    try:
        before = after = (await connection.run(_read_schema, atomic=True)).version
        while after < len(MIGRATIONS):
            after = await run_persistently(connection, _migrate_once)
        _refuse_newer(after)
        return Migration(before, after)
    finally:
        await connection.close()


async def run_persistently(connection: PostgresConnection, work: Work[Result]) -> Result:
    """A change of tables waits only briefly for its locks, and tries again: other transactions queue behind a
    waiting change."""
    for _ in range(MAX_TRIES):
        with contextlib.suppress(StoreUnavailable):
            return await connection.run(work, atomic=True)
        await pause(0.1 + 0.4 * noise())
    return await connection.run(work, atomic=True)


def _refuse_newer(version: int) -> None:
    if version > len(MIGRATIONS):
        raise SchemaTooNew(
            f"the database has schema {version}, this Duetime knows {len(MIGRATIONS)}: upgrade Duetime"
        )


async def _read_schema(connection: Any, _is_retry: bool = False) -> SchemaInfo:
    if not await connection.fetchval(SQL["has_schema"]):
        return SchemaInfo(0, None)
    row = await connection.fetchrow(SQL["version"])
    return SchemaInfo(row["version"] or 0, row["home"])


async def _migrate_once(connection: Any, _is_retry: bool) -> int:
    """One step, under a lock: the second process finds it done. If the process is killed in the middle,
    nothing has changed."""
    await connection.execute("SET LOCAL lock_timeout = 2000")
    await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
    version = (await _read_schema(connection)).version
    if version >= len(MIGRATIONS):
        return version
    if version == 0:
        await connection.execute("CREATE SCHEMA IF NOT EXISTS duetime")
        await connection.execute(
            "CREATE TABLE duetime.schema_version (version bigint NOT NULL, applied_at timestamptz NOT NULL)"
        )
    await connection.execute(f"SET LOCAL lock_timeout = {TABLE_LOCK_TIMEOUT}")
    await connection.execute(MIGRATIONS[version])
    await connection.execute("INSERT INTO duetime.schema_version VALUES ($1, clock_timestamp())", version + 1)
    return version + 1

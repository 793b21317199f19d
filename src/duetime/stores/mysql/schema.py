"""The version of the schema, and migrations."""

from __future__ import annotations

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
from duetime.stores.mysql.connection import MySqlConnection
from duetime.stores.mysql.session import MySqlSession
from duetime.stores.statements import scripts

MIGRATIONS = list(scripts("duetime.stores.mysql", "migrations").values())
PLACE = "the database"
LOCK_TIMEOUT = 30  # seconds
MAINTENANCE_TIMEOUT = 60.0


async def check_schema(connection: MySqlConnection) -> Micros:
    """Returns when the schema was made, which no other database shares."""
    state, home = await connection.read(_read_version)
    refuse_incompatible(state, len(MIGRATIONS), PLACE)
    if state.version < len(MIGRATIONS):
        raise SchemaMissing(
            f"{PLACE} has schema {state.version}, this Duetime needs {len(MIGRATIONS)}: run "
            "`duetime migrate`, or start with `duetime serve --migrate`"
        )
    return home


async def migrate(connection: MySqlConnection, dry_run: bool) -> Migration:
    if dry_run:
        return await connection.read(_plan)
    state, _ = await connection.read(_read_version)
    refuse_incompatible(state, len(MIGRATIONS), PLACE)
    if state.version < len(MIGRATIONS):
        await connection.read(_migrate)
    return migration_of(MIGRATIONS, state)


async def _plan(session: MySqlSession) -> Migration:
    state, _ = await _read_version(session)
    return migration_of(MIGRATIONS, state, await _living(session) if state.version else ())


async def _living(session: MySqlSession) -> list[NodeVersion]:
    return [NodeVersion(*row) for row in await session.all("living_versions", (await session.time(),))]


async def _read_version(session: MySqlSession) -> tuple[SchemaState, Micros]:
    tables = {name for (name,) in await session.all("table_names")}
    if "duetime_schema_version" not in tables:
        return SchemaState(0, 0), 0
    version, home, compatible_from = (await session.all("read_version"))[0]
    return SchemaState(int(version), int(compatible_from)), home


async def _migrate(session: MySqlSession) -> None:
    """Under a lock of the session: the second process finds it done. The server commits each change of a
    table; a script that was interrupted is repeated from its beginning, on tables that no process uses
    yet."""
    if not await session.value("lock_migration", (LOCK_TIMEOUT,)):
        raise StoreUnavailable("another process has been migrating this database for long: repeat")
    try:
        await session.all("create_versions")
        state, _ = await _read_version(session)
        for step in steps_of(MIGRATIONS)[state.version :]:
            if step.number > 1:
                refuse_old_nodes(step, await _living(session))
            await session.run_script(MIGRATIONS[step.number - 1])
            await session.change("write_version", (step.number, await session.time(), step.compatible_from))
    finally:
        await session.all("unlock_migration")

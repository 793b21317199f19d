"""The version of the schema, and migrations."""

from __future__ import annotations

from duetime.errors import SchemaMissing, SchemaTooNew, StoreUnavailable
from duetime.model.instant import Micros
from duetime.store import Migration
from duetime.stores.mysql.connection import MySqlConnection
from duetime.stores.mysql.session import MySqlSession
from duetime.stores.statements import scripts

MIGRATIONS = list(scripts("duetime.stores.mysql", "migrations").values())
LOCK_TIMEOUT = 30  # seconds
MAINTENANCE_TIMEOUT = 60.0


async def check_schema(connection: MySqlConnection) -> Micros:
    """Returns when the schema was made, which no other database shares."""
    version, home = await connection.read(_read_version)
    _refuse_newer(version)
    if version < len(MIGRATIONS):
        raise SchemaMissing(
            f"the database has schema {version}, this Duetime needs {len(MIGRATIONS)}: run "
            "`duetime migrate`, or start with `duetime serve --migrate`"
        )
    return home


async def migrate(connection: MySqlConnection) -> Migration:
    before, _ = await connection.read(_read_version)
    _refuse_newer(before)
    return Migration(before, await connection.read(_migrate) if before < len(MIGRATIONS) else before)


async def _read_version(session: MySqlSession) -> tuple[int, Micros]:
    tables = {name for (name,) in await session.all("table_names")}
    if "duetime_schema_version" not in tables:
        return 0, 0
    version, home = (await session.all("read_version"))[0]
    return int(version), home


async def _migrate(session: MySqlSession) -> int:
    """Under a lock of the session: the second process finds it done. The server commits each change of a
    table; a script that was interrupted is repeated from its beginning, on tables that no process uses
    yet."""
    if not await session.value("lock_migration", (LOCK_TIMEOUT,)):
        raise StoreUnavailable("another process has been migrating this database for long: repeat")
    try:
        await session.all("create_versions")
        version, _ = await _read_version(session)
        while version < len(MIGRATIONS):
            await session.run_script(MIGRATIONS[version])
            version += 1
            await session.change("write_version", (version, await session.time()))
        return version
    finally:
        await session.all("unlock_migration")


def _refuse_newer(version: int) -> None:
    if version > len(MIGRATIONS):
        raise SchemaTooNew(
            f"the database has schema {version}, this Duetime knows {len(MIGRATIONS)}: upgrade Duetime"
        )

"""The version of the layout of keys, and whether the server keeps what it accepts."""

from __future__ import annotations

from duetime.errors import SchemaMissing
from duetime.model.migration import Migration, MigrationStep, SchemaState, refuse_incompatible
from duetime.stores.redis.address import RedisAddress
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.durability import check_server

VERSION = 1


async def check(connection: RedisConnection) -> None:
    if connection.address.checked:
        await check_server(connection)
    state = await _read(connection)
    place = f"Redis at {connection.address.place}, prefix {connection.address.prefix}"
    if state.version < VERSION:
        raise SchemaMissing(f"{place}, has no Duetime store, or an old one: run `duetime migrate`")
    refuse_incompatible(state, VERSION, f"{place},")


async def migrate(address: RedisAddress, dry_run: bool) -> Migration:
    connection = RedisConnection(address)
    try:
        state = await _read(connection)
        if state.version >= VERSION:
            return Migration(state)
        if not dry_run:
            await connection.command("SET", f"{address.keys}version", VERSION)
        return Migration(state, (MigrationStep(VERSION, "The layout of keys", VERSION, None, ()),))
    finally:
        await connection.close()


async def _read(connection: RedisConnection) -> SchemaState:
    """A version that does not say otherwise is for programs that know it."""
    keys = connection.address.keys
    version = int(await connection.command("GET", f"{keys}version") or 0)
    return SchemaState(version, int(await connection.command("GET", f"{keys}compatible_from") or version))

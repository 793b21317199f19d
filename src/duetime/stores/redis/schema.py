"""The version of the layout of keys, and whether the server keeps what it accepts."""

from __future__ import annotations

from duetime.errors import SchemaMissing, SchemaTooNew
from duetime.store import Migration
from duetime.stores.redis.address import RedisAddress
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.durability import check_server

VERSION = 1


async def check(connection: RedisConnection) -> None:
    if connection.address.checked:
        await check_server(connection)
    found = int(await connection.command("GET", f"{connection.address.keys}version") or 0)
    place = f"Redis at {connection.address.place}, prefix {connection.address.prefix}"
    if found < VERSION:
        raise SchemaMissing(f"{place}, has no Duetime store, or an old one: run `duetime migrate`")
    if found > VERSION:
        raise SchemaTooNew(
            f"{place}, has version {found} of the store, this Duetime knows {VERSION}: install the "
            "newer Duetime"
        )


async def migrate(address: RedisAddress) -> Migration:
    connection, key = RedisConnection(address), f"{address.keys}version"
    try:
        before = int(await connection.command("GET", key) or 0)
        if before < VERSION:
            await connection.command("SET", key, VERSION)
    finally:
        await connection.close()
    return Migration(before, max(before, VERSION))

"""Small documents, by kind, tenant and key."""

from __future__ import annotations

from struct import Struct

from duetime.model.instant import Micros
from duetime.store import Record
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.rows import pairs

_ROW = Struct(">qq")  # version, expires_at
_INSTANT = Struct(">q")
_NEVER = -1


class RedisRecords:
    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def get(self, kind: str, tenant: str, key: str) -> Record | None:
        name = record_name(kind, tenant, key)
        row = await self._connection.run("get_record", name)
        return None if row is None else record_of(name, row)

    async def put(
        self,
        kind: str,
        tenant: str,
        key: str,
        value: bytes | None,
        expect: int | None = None,
        expires_at: Micros | None = None,
    ) -> int:
        expected = "" if expect is None else str(expect)
        expiry = _INSTANT.pack(_NEVER if expires_at is None else expires_at)
        values = () if value is None else (value,)
        verb = "put_record" if value is not None and not expect else "replace_record"
        version: int = await self._connection.run(
            verb, record_name(kind, tenant, key), expected, expiry, *values
        )
        return version

    async def page(
        self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None
    ) -> list[Record]:
        scope = f"{kind}\0".encode() if tenant is None else f"{kind}\0{tenant}\0".encode()
        first = b"[" + scope if after is None else b"(" + max(scope, record_name(kind, *after))
        rows = await self._connection.run("list_records", first, b"(" + scope + b"\xff", limit)
        return [record_of(name, row) for name, row in pairs(rows)]


def record_name(kind: str, tenant: str, key: str) -> bytes:
    return f"{kind}\0{tenant}\0{key}".encode()


def record_row(record: Record) -> bytes:
    expires_at = _NEVER if record.expires_at is None else record.expires_at
    return _ROW.pack(record.version, expires_at) + record.value


def record_of(name: bytes, row: bytes) -> Record:
    kind, tenant, key = name.decode().split("\0")
    version, expires_at = _ROW.unpack_from(row)
    return Record(kind, tenant, key, row[_ROW.size :], version, None if expires_at == _NEVER else expires_at)

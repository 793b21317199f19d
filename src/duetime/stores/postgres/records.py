"""Small documents."""

from __future__ import annotations

from typing import Any

from duetime.errors import StoreUnavailable
from duetime.model.instant import Micros
from duetime.store import Record
from duetime.stores.postgres.connections import SQL, PostgresConnections


class PostgresRecords:
    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections

    async def get(self, kind: str, tenant: str, key: str) -> Record | None:
        row = await self._connections.read.row(SQL["get_record"], kind, tenant, key)
        return None if row is None else Record(*row)

    async def put(
        self,
        kind: str,
        tenant: str,
        key: str,
        value: bytes | None,
        expect: int | None = None,
        expires_at: Micros | None = None,
    ) -> int:
        values: tuple[Any, ...] = (kind, tenant, key, value, expires_at)
        if value is None:
            statement, values = "delete_record", (kind, tenant, key, expect)
        elif expect:
            statement, values = "replace_record", (*values, expect)
        else:
            statement = "put_record" if expect is None else "create_record"

        async def work(connection: Any, is_retry: bool) -> int:
            version: int | None = await connection.fetchval(SQL[statement], *values)
            if version is None and is_retry:
                # The expectation may fail because of the first try, whose reply was lost.
                raise StoreUnavailable(f"whether the record {key!r} was written is not known: read it again")
            return version or 0

        return await self._connections.submit.run(work)

    async def page(
        self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None = None
    ) -> list[Record]:
        rows = await self._connections.read.fetch(
            SQL["list_records"], kind, tenant, *(after or ("", "")), limit
        )
        return [Record(*row) for row in rows]

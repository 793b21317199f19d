"""Small documents."""

from __future__ import annotations

from duetime.model.instant import Micros
from duetime.store import Record
from duetime.stores.sql.session import SqlSession, SqlTransaction


async def get(session: SqlSession, kind: str, tenant: str, key: str) -> Record | None:
    row = await session.one("get_record", (kind, tenant, key, await session.time()))
    return None if row is None else Record(*row)


async def put(
    transaction: SqlTransaction,
    kind: str,
    tenant: str,
    key: str,
    value: bytes | None,
    expect: int | None,
    expires_at: Micros | None,
) -> int:
    row = (
        await transaction.one("lock_record", (kind, tenant, key))
        if expect is not None or value is None
        else None
    )
    known = None if row is None else Record(*row)
    expired = known is None or (known.expires_at is not None and known.expires_at <= transaction.now)
    version = 0 if known is None or expired else known.version
    if expect is not None and expect != version:
        return 0
    if value is None:
        return version if await transaction.change("delete_record", (kind, tenant, key)) else 0
    # A record that must not exist is inserted: of two transactions that saw none, one fails.
    statement = "create_record" if expect == 0 and known is None else "put_record"
    return int(await transaction.value(statement, (kind, tenant, key, value, expires_at)))


async def page(
    session: SqlSession, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None
) -> list[Record]:
    equal = () if tenant is None else ("tenant",)
    after_tenant, after_key = after or ("", "")
    values = {
        "kind": kind,
        "tenant": tenant,
        "limit": limit,
        "after_tenant": after_tenant,
        "after_key": after_key,
        "now": await session.time(),
    }
    return [Record(*row) for row in await session.composed("list_records", equal, ["records_order"], values)]

"""Small documents."""

from __future__ import annotations

from duetime.model.instant import Micros
from duetime.store import Record
from duetime.stores.sqlite.session import SqliteSession, SqliteTransaction


def get(session: SqliteSession, kind: str, tenant: str, key: str, now: Micros) -> Record | None:
    row = session.one("get_record", (kind, tenant, key, now))
    return None if row is None else Record(*row)


def put(
    transaction: SqliteTransaction,
    kind: str,
    tenant: str,
    key: str,
    value: bytes | None,
    expect: int | None,
    expires_at: Micros | None,
) -> int:
    known = (
        get(transaction, kind, tenant, key, transaction.now) if expect is not None or value is None else None
    )
    version = 0 if known is None else known.version
    if expect is not None and expect != version:
        return 0
    if value is None:
        return version if transaction.change("delete_record", (kind, tenant, key)) else 0
    return int(transaction.value("put_record", (kind, tenant, key, value, expires_at)))


def page(
    session: SqliteSession,
    kind: str,
    tenant: str | None,
    limit: int,
    after: tuple[str, str] | None,
    now: Micros,
) -> list[Record]:
    equal = () if tenant is None else ("tenant",)
    after_tenant, after_key = after or ("", "")
    values = {
        "kind": kind,
        "tenant": tenant,
        "limit": limit,
        "after_tenant": after_tenant,
        "after_key": after_key,
        "now": now,
    }
    return [Record(*row) for row in session.composed("list_records", equal, ["records_order"], values)]

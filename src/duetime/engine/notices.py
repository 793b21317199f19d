"""Notices: what nodes say to everybody, kept as records that belong to no tenant."""

from __future__ import annotations

from duetime.model.instant import Micros
from duetime.store import Record, Store

NODE, TASK = "node", "task"
EVERYBODY = ""
PAGE = 1_000


async def post(store: Store, kind: str, key: str, value: bytes, until: Micros) -> None:
    await store.put_record(kind, EVERYBODY, key, value, expires_at=until)


async def read(store: Store, kind: str, key: str) -> Record | None:
    return await store.get_record(kind, EVERYBODY, key)


async def read_all(store: Store, kind: str) -> dict[str, Record]:
    found: dict[str, Record] = {}
    after: tuple[str, str] | None = None
    while page := await store.list_records(kind, EVERYBODY, PAGE, after):
        found |= {record.key: record for record in page}
        after = page[-1].tenant, page[-1].key
    return found

"""Small documents, by kind, tenant and key."""

from __future__ import annotations

from heapq import nsmallest

from duetime.model.instant import Micros
from duetime.store import Record


class MemoryRecords:
    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], Record] = {}
        self._newest = (
            0  # the highest version ever given: a new record must not look like one that was deleted
        )

    def get(self, kind: str, tenant: str, key: str, now: Micros) -> Record | None:
        found = self._rows.get((kind, tenant, key))
        return None if found is None or _expired(found, now) else found

    def put(self, record: Record, expect: int | None, now: Micros) -> int:
        known = self.get(record.kind, record.tenant, record.key, now)
        if expect is not None and expect != (0 if known is None else known.version):
            return 0
        self._newest += 1
        self._rows[record[:3]] = record._replace(version=self._newest)
        return self._newest

    def delete(self, kind: str, tenant: str, key: str, expect: int | None, now: Micros) -> int:
        known = self.get(kind, tenant, key, now)
        if known is None or expect not in (None, known.version):
            return 0
        del self._rows[kind, tenant, key]
        return known.version

    def page(
        self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None, now: Micros
    ) -> list[Record]:
        found = (
            record
            for record in self._rows.values()
            if record.kind == kind
            and (tenant is None or record.tenant == tenant)
            and (after is None or (record.tenant, record.key) > after)
            and not _expired(record, now)
        )
        return nsmallest(limit, found, key=lambda record: (record.tenant, record.key))

    def every(self, now: Micros) -> list[Record]:
        return [record for record in self._rows.values() if not _expired(record, now)]

    def restore(self, record: Record) -> None:
        self._rows[record[:3]] = record
        self._newest = max(self._newest, record.version)

    def remove(self, kind: str, tenant: str, key: str) -> None:
        del self._rows[kind, tenant, key]

    def forget(self, now: Micros) -> None:
        self._rows = {name: record for name, record in self._rows.items() if not _expired(record, now)}


def _expired(record: Record, now: Micros) -> bool:
    return record.expires_at is not None and record.expires_at <= now

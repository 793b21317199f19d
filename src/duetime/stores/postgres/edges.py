"""Small documents and the log of events, for those who serve the store to others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duetime.errors import StoreUnavailable
from duetime.model.hint import EventHint
from duetime.store import EVENTS_KEPT, EVENTS_KEPT_FOR, Record
from duetime.stores.postgres.bell import Bell
from duetime.stores.postgres.line import Line
from duetime.stores.postgres.lines import SQL, Lines

EVENT_LOCK = 0x6576_656E_7473  # "events"
TRIM_EVERY = 1_000  # events


class Records:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def get(self, kind: str, tenant: str, key: str) -> Record | None:
        row = await self._lines.read.row(SQL["get_record"], kind, tenant, key)
        return None if row is None else Record(*row)

    async def put(self, record: Record, expect: int | None) -> int:
        statement = SQL["put_record" if expect is None else "replace_record" if expect else "create_record"]
        values = [record.kind, record.tenant, record.key, record.value, record.expires_at, *([expect] if expect else [])]
        tries = 0

        async def work(connection: Any) -> int | None:
            nonlocal tries
            tries += 1
            version: int | None = await connection.fetchval(statement, *values)
            return version

        version = await self._lines.submit.run(work)
        if version is None and tries > 1:
            # What stands in our way may be our own first try, whose reply was lost.
            raise StoreUnavailable(f"whether the record {record.key!r} was written is not known: read it again")
        return version or 0

    async def delete(self, kind: str, tenant: str, key: str) -> bool:
        return await self._lines.submit.count(SQL["delete_record"], kind, tenant, key) == 1

    async def page(self, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None) -> list[Record]:
        values = (kind, limit, *(after or ("", "")))
        if tenant is None:
            return [Record(*row) for row in await self._lines.read.fetch(SQL["list_all_records"], *values)]
        return [Record(*row) for row in await self._lines.read.fetch(SQL["list_records"], *values, tenant)]


class Events:
    def __init__(self, lines: Lines, bell: Bell) -> None:
        self._lines = lines
        self._bell = bell

    async def add(self, events: Sequence[bytes]) -> None:
        if not events:
            return
        last: int = await self._lines.event.value(SQL["add_events"], EVENT_LOCK, events)
        if last % TRIM_EVERY < len(events):
            await self._lines.event.count(SQL["trim_events"], last - EVENTS_KEPT)
        self._bell.ring([EventHint(last)])

    async def page(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        return [(row["id"], row["event"]) for row in await self._lines.read.fetch(SQL["list_events"], after, limit)]

    async def last(self) -> int:
        last: int = await self._lines.read.value(SQL["last_event"])
        return last


async def forget(line: Line) -> None:
    """What has expired, and what is old."""
    await line.count(SQL["forget_records"])
    old = await line.value(SQL["last_old_event"], EVENTS_KEPT_FOR)
    await line.count(SQL["trim_events"], max(old, await line.value(SQL["last_event"]) - EVENTS_KEPT))

"""The event log."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.hint import EventHint
from duetime.store import EVENTS_KEPT, EVENTS_KEPT_FOR, EventPage
from duetime.stores.postgres.connection import PostgresConnection
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.notifier import Notifier

EVENT_LOCK = 0x6576_656E_7473  # "events"
TRIM_INTERVAL = 1_000  # events


class PostgresEventLog:
    def __init__(self, connections: PostgresConnections, notifier: Notifier) -> None:
        self._connections = connections
        self._notifier = notifier

    async def add(self, events: Sequence[bytes]) -> None:
        if not events:
            return
        last: int = await self._connections.event.value(SQL["add_events"], EVENT_LOCK, events)
        if last % TRIM_INTERVAL < len(events):
            await self._connections.event.count(SQL["trim_events"], last - EVENTS_KEPT)
        self._notifier.notify([EventHint(last)])

    async def page(self, after: int, limit: int) -> EventPage:
        *rows, newest = await self._connections.read.fetch(SQL["list_events"], after, limit)
        return EventPage([(row["id"], row["event"]) for row in rows], newest["id"])


async def trim_old(connection: PostgresConnection) -> None:
    old: int = await connection.value(SQL["last_old_event"], EVENTS_KEPT_FOR)
    newest = (await connection.fetch(SQL["list_events"], 0, 0))[-1]["id"]
    await connection.count(SQL["trim_events"], max(old, newest - EVENTS_KEPT))

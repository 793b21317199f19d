"""The event log."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.hint import EventHint
from duetime.store import EVENTS_KEPT, EVENTS_KEPT_FOR, EventPage
from duetime.stores.sql.session import SqlSession, SqlTransaction

TRIM_INTERVAL = 1_000  # events


async def add(transaction: SqlTransaction, events: Sequence[bytes]) -> None:
    first = 1 + int(await transaction.value("lock_events"))
    last = first + len(events) - 1
    rows = [(number, transaction.now, bytearray(event)) for number, event in enumerate(events, first)]
    await transaction.change_many("add_events", rows)
    if last % TRIM_INTERVAL < len(events):
        await transaction.change("trim_events", (last - EVENTS_KEPT,))
    transaction.tell([EventHint(last)])


async def page(session: SqlSession, after: int, limit: int) -> EventPage:
    rows = await session.all("list_events", (after, limit)) if limit else []
    return EventPage([(number, event) for number, event in rows], await _last(session))


async def forget_old(transaction: SqlTransaction) -> None:
    old = await transaction.value("last_old_event", (transaction.now - EVENTS_KEPT_FOR,))
    await transaction.change("trim_events", (max(old, await _last(transaction) - EVENTS_KEPT),))


async def _last(session: SqlSession) -> int:
    return int(await session.value("last_event"))

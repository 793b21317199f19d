"""The event log."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.hint import EventHint
from duetime.store import EVENTS_KEPT, EVENTS_KEPT_FOR, EventPage
from duetime.stores.sqlite.session import SqliteSession, SqliteTransaction

TRIM_INTERVAL = 1_000  # events


def add(transaction: SqliteTransaction, events: Sequence[bytes]) -> None:
    transaction.change_many("add_events", [(transaction.now, bytearray(event)) for event in events])
    last = _last(transaction)
    if last % TRIM_INTERVAL < len(events):
        transaction.change("trim_events", (last - EVENTS_KEPT,))
    transaction.tell([EventHint(last)])


def page(session: SqliteSession, after: int, limit: int) -> EventPage:
    rows = session.all("list_events", (after, limit)) if limit else []
    return EventPage([(number, event) for number, event in rows], _last(session))


def forget_old(transaction: SqliteTransaction) -> None:
    old = transaction.value("last_old_event", (transaction.now - EVENTS_KEPT_FOR,))
    transaction.change("trim_events", (max(old, _last(transaction) - EVENTS_KEPT),))


def _last(session: SqliteSession) -> int:
    return int(session.value("last_event"))

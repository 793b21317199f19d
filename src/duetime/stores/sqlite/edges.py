"""Small documents and the log of events, for those who serve the store to others."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.hint import EventHint
from duetime.model.instant import Micros
from duetime.store import EVENTS_KEPT, EVENTS_KEPT_FOR, Record
from duetime.stores.sqlite.session import Session, Transaction

TRIM_EVERY = 1_000  # events


def get_record(session: Session, kind: str, tenant: str, key: str, now: Micros) -> Record | None:
    row = session.one("get_record", (kind, tenant, key, now))
    return None if row is None else Record(*row)


def put_record(transaction: Transaction, record: Record, expect: int | None) -> int:
    """Answers the new version; 0 when another was expected."""
    if expect is not None:
        known = get_record(transaction, record.kind, record.tenant, record.key, transaction.now)
        if expect != (0 if known is None else known.version):
            return 0
    return int(transaction.value("put_record", (record.kind, record.tenant, record.key, record.value, record.expires_at)))


def delete_record(transaction: Transaction, kind: str, tenant: str, key: str) -> bool:
    return transaction.change("delete_record", (kind, tenant, key, transaction.now)) == 1


def list_records(session: Session, kind: str, tenant: str | None, limit: int, after: tuple[str, str] | None, now: Micros) -> list[Record]:
    parameters = (kind, now, limit, *(after or ("", "")))
    if tenant is None:
        return [Record(*row) for row in session.all("list_all_records", parameters)]
    return [Record(*row) for row in session.all("list_records", (*parameters, tenant))]


def add_events(transaction: Transaction, events: Sequence[bytes]) -> None:
    transaction.change_many("add_events", [(transaction.now, bytearray(event)) for event in events])
    last = last_event(transaction)
    if last % TRIM_EVERY < len(events):
        transaction.change("trim_events", (last - EVENTS_KEPT,))
    transaction.tell([EventHint(last)])


def list_events(session: Session, after: int, limit: int) -> list[tuple[int, bytes]]:
    return [(number, event) for number, event in session.all("list_events", (after, limit))]


def last_event(session: Session) -> int:
    return int(session.value("last_event"))


def forget(transaction: Transaction) -> None:
    transaction.change("forget_records", (transaction.now,))
    old = transaction.value("last_old_event", (transaction.now - EVENTS_KEPT_FOR,))
    transaction.change("trim_events", (max(old, last_event(transaction) - EVENTS_KEPT),))

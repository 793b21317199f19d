"""What running attempts report and keep for the next ones."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.store import AttemptUpdate, OnceReply
from duetime.stores.sqlite.session import SqliteTransaction


def save(transaction: SqliteTransaction, updates: Sequence[AttemptUpdate]) -> list[UUID]:
    refused = {
        update.id: None
        for update in updates
        if transaction.change("save_progress", (update.id.bytes, *update[1:])) == 0
    }
    return list(refused)


def take_once(transaction: SqliteTransaction, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
    found = transaction.one("find_marker", (job_id.bytes, key))
    if found is None:
        taken = transaction.change("take_marker", (job_id.bytes, attempt, key, nonce.bytes))
        return OnceReply.TAKEN if taken else OnceReply.REFUSED
    # Even if another attempt has the job now: it sees the marker as known, so only this caller acts on it.
    if found[0] == nonce.bytes:
        return OnceReply.TAKEN
    return OnceReply.KNOWN if transaction.value("is_running", (job_id.bytes, attempt)) else OnceReply.REFUSED

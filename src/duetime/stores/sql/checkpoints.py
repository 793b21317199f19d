"""What running attempts report and keep for the next ones."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.store import AttemptUpdate, OnceReply
from duetime.stores.sql.session import SqlTransaction


async def save(transaction: SqlTransaction, updates: Sequence[AttemptUpdate]) -> list[UUID]:
    rows = [(update.id.bytes, *update[1:]) for update in updates]
    written = await transaction.change_each("save_progress", rows)
    return list(dict.fromkeys(update.id for update, count in zip(updates, written, strict=True) if not count))


async def take_once(
    transaction: SqlTransaction, job_id: UUID, attempt: int, key: str, nonce: UUID
) -> OnceReply:
    found = await transaction.one("find_marker", (job_id.bytes, key))
    if found is None:
        taken = await transaction.change("take_marker", (job_id.bytes, attempt, key, nonce.bytes))
        return OnceReply.TAKEN if taken else OnceReply.REFUSED
    # Even if another attempt has the job now: it sees the marker as known, so only this caller acts on it.
    if found[0] == nonce.bytes:
        return OnceReply.TAKEN
    return (
        OnceReply.KNOWN
        if await transaction.value("is_running", (job_id.bytes, attempt))
        else OnceReply.REFUSED
    )

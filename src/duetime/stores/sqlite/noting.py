"""What a running attempt keeps for itself and for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.store import MarkReply, Note
from duetime.stores.sqlite.session import Transaction


def save(transaction: Transaction, notes: Sequence[Note]) -> list[UUID]:
    refused = {note.id: None for note in notes if transaction.change("save_note", (note.id.bytes, *note[1:])) == 0}
    return list(refused)


def mark(transaction: Transaction, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
    found = transaction.one("find_mark", (job_id.bytes, key))
    if found is None:
        taken = transaction.change("take_mark", (job_id.bytes, attempt, key, nonce.bytes))
        return MarkReply.TAKEN if taken else MarkReply.REFUSED
    # Even if the job is somebody else's by now: whoever has it knows the mark, so only this caller can act on it.
    if found[0] == nonce.bytes:
        return MarkReply.TAKEN
    return MarkReply.KNOWN if transaction.value("is_running", (job_id.bytes, attempt)) else MarkReply.REFUSED

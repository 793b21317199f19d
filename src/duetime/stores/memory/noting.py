"""What running attempts keep: checkpoints, progress and marks. Nobody else's attempt number will do."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.store import MarkReply, Note
from duetime.stores.memory.jobs import Jobs


def save(jobs: Jobs, notes: Sequence[Note]) -> list[UUID]:
    """Answers the ids of those that were refused."""
    refused: dict[UUID, None] = {}
    for note in notes:
        row = jobs.running(note.id, note.attempt)
        if row is None:
            refused[note.id] = None
            continue
        row.checkpoint = row.checkpoint if note.checkpoint is None else note.checkpoint
        row.progress = row.progress if note.progress is None else note.progress
    return list(refused)


def mark(jobs: Jobs, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
    if jobs.running(job_id, attempt) is None:
        return MarkReply.REFUSED
    taken_by = jobs.marks.setdefault(job_id, {}).setdefault(key, nonce)
    return MarkReply.TAKEN if taken_by == nonce else MarkReply.KNOWN

"""What running attempts report: checkpoints, progress, starts, deadlines and once-markers."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.store import AttemptUpdate, OnceReply
from duetime.stores.memory.jobs import MemoryJobs


def save(jobs: MemoryJobs, updates: Sequence[AttemptUpdate]) -> list[UUID]:
    """The ids of those that were refused."""
    refused: dict[UUID, None] = {}
    for update in updates:
        row = jobs.running(update.id, update.attempt)
        if row is None or (update.deadline is not None and row.node is not None):
            refused[update.id] = None
            continue
        row.checkpoint = row.checkpoint if update.checkpoint is None else update.checkpoint
        row.progress = row.progress if update.progress is None else update.progress
        row.begun = row.begun or update.started
        if update.deadline is not None:
            row.draft = row.draft._replace(due_at=update.deadline)
    return list(refused)


def take_once(jobs: MemoryJobs, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
    if jobs.running(job_id, attempt) is None:
        return OnceReply.REFUSED
    taken_by = jobs.markers.setdefault(job_id, {}).setdefault(key, nonce)
    return OnceReply.TAKEN if taken_by == nonce else OnceReply.KNOWN

"""What a running attempt keeps: checkpoints, progress, marks. And who waits for its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from duetime.model.hint import JobHint
from duetime.store import MarkReply, Note
from duetime.stores.postgres.bell import Bell
from duetime.stores.postgres.lines import SQL, Lines


class Notes:
    def __init__(self, lines: Lines, bell: Bell) -> None:
        self._lines = lines
        self._bell = bell

    async def save(self, notes: Sequence[Note]) -> list[UUID]:
        return [job_id for batch in _each_job_once(merged(notes)) for job_id in await self._save_batch(batch)]

    async def mark(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
        row: Any = await self._lines.note.row(SQL["take_mark"], job_id, attempt, key, nonce)
        if row["made"]:
            return MarkReply.TAKEN
        # In a statement of its own: the one above cannot see what was committed while it waited. Our own nonce means that an earlier try
        # took the mark and its reply was lost.
        if await self._lines.note.value(SQL["mark_nonce"], job_id, key) == nonce:
            return MarkReply.TAKEN
        return MarkReply.KNOWN if row["running"] else MarkReply.REFUSED

    async def _save_batch(self, batch: Sequence[Note]) -> list[UUID]:
        written = await self._write(batch)
        if len(written) < len(batch):
            # A row that was touched between the statement's snapshot and its lock escapes it once.
            written |= await self._write([note for note in batch if note.id not in written])
        return [note.id for note in batch if note.id not in written]

    async def _write(self, notes: Sequence[Note]) -> set[UUID]:
        return {row["id"] for row in await self._lines.note.fetch(SQL["save_notes"], *zip(*notes, strict=True))}

    async def wait_for(self, job_id: UUID) -> bool:
        row: Any = await self._lines.submit.row(SQL["await_job"], job_id)
        if row is not None and row["pending"]:
            self._bell.ring([JobHint(row["queue"], row["priority"], row["due_at"], row["exclusive"])])
        return row is not None


def merged(notes: Iterable[Note]) -> list[Note]:
    """One note of each attempt: the last word on each of its two parts."""
    latest: dict[tuple[UUID, int], Note] = {}
    for note in notes:
        known = latest.get(note[:2], note)
        latest[note[:2]] = Note(
            note.id,
            note.attempt,
            known.checkpoint if note.checkpoint is None else note.checkpoint,
            known.progress if note.progress is None else note.progress,
        )
    return list(latest.values())


def _each_job_once(notes: Sequence[Note]) -> list[list[Note]]:
    """Attempts of the same job go into statements of their own: of each job one statement answers once."""
    batches: list[dict[UUID, Note]] = []
    for note in notes:
        batch = next((each for each in batches if note.id not in each), None)
        if batch is None:
            batches.append(batch := {})
        batch[note.id] = note
    return [list(batch.values()) for batch in batches]

"""What a running attempt keeps: checkpoint, progress, and markers that are taken once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from duetime.store import AttemptUpdate, OnceReply
from duetime.stores.postgres.connections import SQL, PostgresConnections


class PostgresCheckpoints:
    def __init__(self, connections: PostgresConnections) -> None:
        self._connection = connections.progress

    async def save(self, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        return [
            job_id for batch in _each_job_once(merged(updates)) for job_id in await self._save_batch(batch)
        ]

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        row: Any = await self._connection.row(SQL["take_once"], job_id, attempt, key, nonce)
        if row["taken"]:
            return OnceReply.TAKEN
        # In a statement of its own: the one above cannot see what was committed while it waited. The same
        # nonce means that an earlier try
        # took the marker and its reply was lost.
        if await self._connection.value(SQL["once_nonce"], job_id, key) == nonce:
            return OnceReply.TAKEN
        return OnceReply.KNOWN if row["running"] else OnceReply.REFUSED

    async def _save_batch(self, batch: Sequence[AttemptUpdate]) -> list[UUID]:
        written = await self._write(batch)
        if len(written) < len(batch):
            # A row that was touched between the statement's snapshot and its lock is missed once.
            written |= await self._write([update for update in batch if update.id not in written])
        return [update.id for update in batch if update.id not in written]

    async def _write(self, updates: Sequence[AttemptUpdate]) -> set[UUID]:
        return {
            row["id"]
            for row in await self._connection.fetch(SQL["save_progress"], *zip(*updates, strict=True))
        }


def merged(updates: Iterable[AttemptUpdate]) -> list[AttemptUpdate]:
    """One update of each attempt: the last value of each field."""
    latest: dict[tuple[UUID, int], AttemptUpdate] = {}
    for update in updates:
        known = latest.get(update[:2], update)
        latest[update[:2]] = AttemptUpdate(
            update.id,
            update.attempt,
            known.checkpoint if update.checkpoint is None else update.checkpoint,
            known.progress if update.progress is None else update.progress,
            known.started or update.started,
            known.deadline if update.deadline is None else update.deadline,
        )
    return list(latest.values())


def _each_job_once(updates: Sequence[AttemptUpdate]) -> list[list[AttemptUpdate]]:
    """Attempts of the same job go into separate statements: a statement returns each job once."""
    batches: list[dict[UUID, AttemptUpdate]] = []
    for update in updates:
        batch = next((each for each in batches if update.id not in each), None)
        if batch is None:
            batches.append(batch := {})
        batch[update.id] = update
    return [list(batch.values()) for batch in batches]

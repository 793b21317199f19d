"""What running attempts report: checkpoints, progress, starts, deadlines and once-markers."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.store import AttemptUpdate, OnceReply
from duetime.stores.redis.connection import Argument, RedisConnection
from duetime.stores.redis.rows import optional, uuid_of


class RedisCheckpoints:
    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def save(self, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        arguments: list[Argument] = []
        for update in updates:
            arguments += (
                update.id.bytes,
                update.attempt,
                optional(update.checkpoint),
                optional(update.progress),
                int(update.started),
                "" if update.deadline is None else update.deadline,
            )
        refused = await self._connection.run("save_progress", *arguments) if updates else []
        return [uuid_of(job_id) for job_id in dict.fromkeys(refused)]

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        reply = await self._connection.run("take_once", job_id.bytes, attempt, key, nonce.bytes)
        return OnceReply(reply.decode())

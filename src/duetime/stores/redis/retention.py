"""Deletes what is older than its retention time, in bounded pieces so that workers do not wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from duetime.model.instant import Micros
from duetime.store import EVENTS_KEPT_FOR
from duetime.stores.redis.connection import RedisConnection

BATCH = 250  # a few milliseconds of the server


async def prune(connection: RedisConnection, before: Micros, targets: Mapping[str, Micros]) -> int:
    while await connection.run("prune_others", before, EVENTS_KEPT_FOR, BATCH):
        pass
    cursor = b"0"
    while (cursor := await connection.run("forget_limit_keys", cursor, BATCH)) != b"0":
        pass
    known = await connection.command("SMEMBERS", f"{connection.address.keys}targets")
    return sum(
        [
            await _prune_target(connection, target, max(before, targets.get(target.decode(), 0)))
            for target in known
        ]
    )


async def _prune_target(connection: RedisConnection, target: bytes, before: Micros) -> int:
    deleted = 0
    while True:
        gone, seen = map(int, await connection.run("prune_jobs", target, before, BATCH))
        deleted += gone
        if gone == 0 or seen < BATCH:
            return deleted


async def forget(connection: RedisConnection, ids: Sequence[UUID]) -> int:
    gone = 0
    for at in range(0, len(ids), BATCH):
        some = [job_id.bytes for job_id in ids[at : at + BATCH]]
        gone += int(await connection.run("forget_finished", *some))
    return gone

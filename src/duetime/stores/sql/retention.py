"""Deleting old data, in bounded pieces so that writers do not wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duetime.model.instant import SECOND, Micros
from duetime.stores.sql import event_log
from duetime.stores.sql.session import Row, SqlSession, SqlTransaction

BATCH = 5_000
WINDOW = 50_000  # past jobs looked at together, for those of certain targets
MAX_LATENESS = 7_200 * SECOND  # a job may be recorded this long after its end, and is found all the same

Position = tuple[Micros, Any]  # an end and a row: where a search of the past goes on


class TargetRetention:
    """Until when the jobs of targets with a retention of their own are deleted, so that not all the past is
    searched each time."""

    def __init__(self) -> None:
        self._deleted_before: dict[str, Micros] = {}

    def start(self, instants: Mapping[str, Micros]) -> Position | None:
        """Where to begin, if there is anything to do."""
        if not instants:
            return None
        return min(
            self._deleted_before.get(target, MAX_LATENESS) for target in instants
        ) - MAX_LATENESS - 1, 0

    def done(self, instants: Mapping[str, Micros]) -> None:
        self._deleted_before |= instants


async def prune_others(transaction: SqlTransaction, before: Micros) -> None:
    """Everything but jobs."""
    await transaction.change("prune_nodes", (before,))
    await transaction.change("prune_versions", (before,))
    await transaction.change("forget_limit_keys", (transaction.now,))
    await transaction.change("forget_records", (transaction.now,))
    await event_log.forget_old(transaction)


async def prune_jobs(transaction: SqlTransaction, before: Micros) -> int:
    """Returns how many jobs were deleted; fewer than a batch means that none is left."""
    return await forget(transaction, await transaction.all("finished_before", (before, BATCH)))


async def of_targets(
    session: SqlSession, instants: Mapping[str, Micros], start: Position
) -> tuple[list[Row], Position | None]:
    """Ids of jobs of these targets that ended before the instants of their own, from `start` on; and where to
    go on, if anywhere."""
    window = await session.all("past_window", (*start, max(instants.values()), WINDOW))
    chosen: list[Row] = [
        (job_id,) for _, job_id, target, finished_at in window if finished_at < instants.get(target, 0)
    ]
    return chosen, (window[-1][3], window[-1][0]) if len(window) == WINDOW else None


async def forget(transaction: SqlTransaction, ids: list[Row]) -> int:
    for statement in ("forget_attempts", "forget_markers"):
        await transaction.change_many(statement, ids)
    return await transaction.change_many("forget_jobs", ids)

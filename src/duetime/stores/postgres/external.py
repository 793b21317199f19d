"""External jobs: a cancelled one has no worker to ask, so it ends immediately."""

from __future__ import annotations

from uuid import UUID

from duetime.model.job import Ending, State
from duetime.model.settle import Settlement
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.settle import PostgresSettlements


class ExternalJobs:
    def __init__(self, connections: PostgresConnections, settlements: PostgresSettlements) -> None:
        self._connections = connections
        self._settlements = settlements

    async def cancel(self, tenant: str, job_id: UUID, reason: str) -> bool:
        """False when it is not external (any more)."""
        row = await self._connections.submit.row(SQL["external_job"], tenant, job_id)
        if row is None:
            return False
        attempt, due_at, failures, losses, now = row
        ended = Settlement(
            job_id,
            attempt,
            State.CANCELLED,
            due_at,
            failures,
            losses,
            Ending.CANCELLED,
            None,
            now,
            None,
            reason,
        )
        return not (await self._settlements.settle([ended])).refused

"""Jobs handed over to a worker outside, and their deadlines."""

from __future__ import annotations

from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import Claimed
from duetime.stores.handover import cancellation
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.postgres.rows import claimed_of
from duetime.stores.postgres.work import Work


class Outside:
    def __init__(self, lines: Lines, work: Work) -> None:
        self._lines = lines
        self._work = work

    async def extend(self, job_id: UUID, attempt: int, due_at: Micros) -> bool:
        return await self._lines.submit.count(SQL["extend"], job_id, attempt, due_at) == 1

    async def overdue(self, limit: int) -> list[Claimed]:
        return [claimed_of(row) for row in await self._lines.sweep.fetch(SQL["overdue"], limit)]

    async def cancel(self, tenant: str, job_id: UUID, reason: str) -> bool:
        """False when it is not handed over (any more): then somebody else says how it ends."""
        row = await self._lines.submit.row(SQL["outside_job"], tenant, job_id)
        if row is None:
            return False
        attempt, due_at, failures, losses, now = row
        return not await self._work.settle([cancellation(job_id, attempt, due_at, failures, losses, now, reason)])

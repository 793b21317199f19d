"""Whether a claimed job may still start. A job can be claimed long after its due time: no worker ran, or all
were busy."""

from __future__ import annotations

from duetime.clock import Clock
from duetime.invoker import Policies
from duetime.model.expiry import expired
from duetime.model.instant import Micros
from duetime.model.job import Claimed, JobFilter, Overlap, State
from duetime.model.schedule import LATE_AFTER, missed_at_start
from duetime.model.settle import was_not_here
from duetime.store import Store

ENDED = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED})


class StartCheck:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def needed(self, job: Claimed, policies: Policies) -> bool:
        """False for nearly all jobs: they are in time. No other job costs a question to the store."""
        now = self._clock.now()
        if job.schedule_id is not None and job.due_at < now - LATE_AFTER:
            return True
        if policies.expires is None and policies.retry.max_age is None:
            return False
        # A node that could not run it may have moved its due time.
        moved = job.attempt > 1 and job.failures == 0
        return moved or expired(policies.expires, policies.retry, job.due_at, now) is not None

    async def reason(self, job: Claimed, policies: Policies) -> str | None:
        """Why the job does not start; None if it starts. A job that has started, or may have, goes on."""
        attempts = await self._store.list_attempts(job.id) if job.attempt > 1 else []
        if not all(map(was_not_here, attempts)):
            return None
        due_at = min([job.due_at, *(one.started_at for one in attempts if one.started_at is not None)])
        too_old = expired(policies.expires, policies.retry, due_at, self._clock.now())
        if too_old is not None or job.schedule_id is None:
            return too_old
        schedule, free_at = (
            await self._store.get_schedule(job.tenant, job.schedule_id),
            await self._free_at(job),
        )
        return None if schedule is None else missed_at_start(schedule, job, self._clock.now(), free_at)

    async def _free_at(self, job: Claimed) -> Micros:
        """When the job before it ended, if it had to wait for that one: the wait does not make it missed."""
        if job.overlap != Overlap.QUEUE:
            return 0
        earlier = JobFilter(job.tenant, states=ENDED, schedule=job.schedule)
        found = await self._store.list_jobs(earlier, 1, job.id)
        return 0 if not found else found[0].finished_at or 0

"""Whether a claimed job may still start. A job can be claimed long after its due time: no worker ran, all
were busy, or it waited for a limit."""

from __future__ import annotations

from uuid import UUID

from duetime.clock import Clock
from duetime.engine.node.registry import profiles, visible_nodes
from duetime.invoker import Policies
from duetime.model import duration
from duetime.model.expiry import expired
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, JobFilter, Overlap, State
from duetime.model.limit import QueueFilter
from duetime.model.schedule import LATE_AFTER, missed_at_start
from duetime.model.settle import was_not_here
from duetime.model.why_facts import FleetStatus
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
        if too_old is not None:
            limit = None if job.limit_key is None else await self._limit(job)
            return too_old if limit is None else f"{too_old}; {self._waited(job, limit)}"
        return None if job.schedule_id is None else await self._missed(job, job.schedule_id)

    async def _missed(self, job: Claimed, schedule_id: UUID) -> str | None:
        """What the schedule's policy says. By default it does not apply to a fire that waited for a limit."""
        schedule, free_at = await self._store.get_schedule(job.tenant, schedule_id), await self._free_at(job)
        if schedule is None:
            return None
        reason = missed_at_start(schedule, job, self._clock.now(), free_at)
        if reason is None:
            return None
        limit = await self._limit(job)
        if limit is None:
            return f"{reason}; {self._waited(job, 'a worker')}"
        return f"{reason}; {self._waited(job, limit)}" if schedule.draft.missed.waiting else None

    async def _free_at(self, job: Claimed) -> Micros:
        """When the job before it ended, if it had to wait for that one: the wait does not make it missed."""
        if job.overlap != Overlap.QUEUE:
            return 0
        earlier = JobFilter(job.tenant, states=ENDED, schedule=job.schedule)
        found = await self._store.list_jobs(earlier, 1, job.id)
        return 0 if not found else found[0].finished_at or 0

    async def _limit(self, job: Claimed) -> str | None:
        """The limit that held it up; None if it has none, or no worker was there. Nothing records the wait:
        a job with a limit that is late although workers were there has waited for it."""
        name = f"the limit {job.limit_key}"
        if job.limit_key is None:
            queues = await self._store.queues(wanted=QueueFilter(name=job.queue))
            if all(queue.max_running is None and queue.rate is None for queue in queues):
                return None
            name = f"the limit of queue {job.queue}"
        nodes, known = await visible_nodes(self._store, job.tenant), await profiles(self._store)
        fleet = FleetStatus(self._clock.now(), nodes, known)
        return name if fleet.has_served(job.queue, job.target, job.due_at) else None

    def _waited(self, job: Claimed, what: str) -> str:
        wait = (self._clock.now() - job.due_at) // SECOND * SECOND
        return f"it waited {duration.show(wait)} for {what}"

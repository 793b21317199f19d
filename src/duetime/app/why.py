"""Why a job or a schedule is in its state: reads what affects it from the store and explains it in one
sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from duetime.app.context import AppContext
from duetime.app.listing import find_schedule
from duetime.engine.node.registry import profiles, visible_nodes
from duetime.engine.submit.validate import check_id
from duetime.model.instant import Micros, to_datetime
from duetime.model.job import Job, JobFilter, State
from duetime.model.lease import NodeId
from duetime.model.limit import TaskLimit
from duetime.model.why import Why, explain
from duetime.model.why_facts import DAY, FleetStatus, JobFacts, held_up_by_rate
from duetime.model.why_schedules import explain_schedule
from duetime.model.zone import load
from duetime.store import ClaimRequest, Lane, OfNode

NO_NODE = NodeId(0)
PREFETCH = 3_650 * DAY  # so far ahead that the answer is the instant at which a rate allows the next start
MAX_READ = 1_000
LATEST_CHANGES = 20
RUNNING, PENDING = frozenset({State.RUNNING}), frozenset({State.PENDING})


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is as it is. `code` is stable; the sentence and the remedy are for people."""

    code: str
    why: str
    since: datetime | None
    remedy: str | None

    @staticmethod
    def of(found: Why) -> Reason:
        return Reason(
            found.code, found.why, None if found.since is None else to_datetime(found.since), found.remedy
        )


@dataclass(frozen=True, slots=True)
class Explanations:
    context: AppContext

    async def job(self, job_id: UUID | str, tz: str = "UTC") -> Reason:
        """One sentence that explains the present state of a job, with times in `tz`."""
        zone = load(tz)
        job = await self.context.commands.get_job(self.context.tenant, check_id(job_id))
        fleet, attempts = await self._fleet(), await self.context.store.list_attempts(job.id)
        facts = JobFacts(job, fleet, attempts, bound=self._limit(job, fleet), zone=zone)
        if job.state is State.PENDING and facts.waits:
            facts = await self._hindrances(facts)
        return Reason.of(explain(facts))

    async def schedule(self, reference: str, tz: str | None = None) -> Reason:
        """One sentence that explains when a schedule fires next, or why it does not. By name or id. Times are
        in `tz`, or in the time zone of the schedule."""
        zone = None if tz is None else load(tz)
        store, tenant = self.context.store, self.context.tenant
        schedule = await find_schedule(store, tenant, reference)
        versions = (
            await store.list_versions(tenant, schedule.draft.name, LATEST_CHANGES) if schedule.paused else []
        )
        return Reason.of(explain_schedule(schedule, await self._fleet(), versions, zone))

    async def _fleet(self) -> FleetStatus:
        store = self.context.store
        nodes, known = await visible_nodes(store, self.context.tenant, True), await profiles(store)
        return FleetStatus(await store.time(), nodes, known)

    async def _hindrances(self, facts: JobFacts) -> JobFacts:
        """Everything that can keep a due job from starting."""
        job, store, bound = facts.job, self.context.store, facts.bound
        queue = next((one for one in await store.queues(counted=True) if one.name == job.queue), None)
        due = JobFilter(self.context.tenant, states=PENDING, queue=job.queue, due_before=facts.now + 1)
        facts = replace(
            facts,
            queue=queue,
            running_in_queue=0 if queue is None or queue.counts is None else queue.counts.running,
            due_in_queue=await store.count_jobs(due, MAX_READ),
            blocker=await self._blocker(job),
        )
        if bound is not None and bound.max_running is not None:
            facts = await self._in_use(facts)
        if queue is not None and queue.rate is not None:
            lanes = (Lane(job.queue, job.priority, 0, job.tenant),)
            request = ClaimRequest(NO_NODE, lanes, (job.target,), room=1, prefetch=PREFETCH)
            facts = replace(facts, queue_free_at=(await store.due_jobs(request)).next_at)
        if bound is not None and bound.rate is not None:
            facts = replace(facts, key_asks_at=await self._asks_at(job, bound, facts.now))
        return facts

    def _limit(self, job: Job, fleet: FleetStatus) -> TaskLimit | None:
        """The limit that the nodes apply to the job; that of this process if they have not published one."""
        if job.limit_key is None:
            return None
        task = self.context.shared.tasks.get(job.target)
        own = None if task is None else task.options.limit
        return fleet.bound(job.target) or (
            None if own is None else TaskLimit(job.target, own.max_running, own.parsed_rate)
        )

    async def _asks_at(self, job: Job, limit: TaskLimit, now: Micros) -> Micros | None:
        """When the job that the rate of this limit key holds up asks again."""
        wanted = JobFilter(self.context.tenant, states=PENDING, target=job.target, due_after=now)
        others = await self.context.store.list_jobs(wanted, MAX_READ)
        asking = [
            other.due_at
            for other in others
            if other.limit_key == job.limit_key and held_up_by_rate(other, limit, now)
        ]
        return min(asking, default=None)

    async def _blocker(self, job: Job) -> Job | None:
        """The job of the same schedule that has started and not finished."""
        if job.overlap is None or job.attempt > 0:
            return None
        for states in (RUNNING, PENDING):
            wanted = JobFilter(self.context.tenant, states=states, schedule=job.schedule)
            for other in await self.context.store.list_jobs(wanted, MAX_READ):
                if other.attempt > 0 and other.schedule_id == job.schedule_id:
                    return other
        return None

    async def _in_use(self, facts: JobFacts) -> JobFacts:
        """Jobs of other tenants are counted, but not named."""
        job, store, tenant = facts.job, self.context.store, self.context.tenant
        wanted = JobFilter(tenant, states=RUNNING, target=job.target)
        own = [other for other in await store.list_jobs(wanted, MAX_READ) if other.limit_key == job.limit_key]
        key_running = len(own)
        for node in facts.fleet.nodes:
            if node.running:
                held = await store.running_jobs(OfNode(node.id), MAX_READ)
                key_running += sum(
                    other.limit_key == job.limit_key and other.tenant != tenant for other in held
                )
        return replace(facts, key_running=key_running, key_jobs=own)

"""Why: reads of the store what bears upon a job or schedule, and has it put into one sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from duetime.app.client import Client
from duetime.app.finding import find_schedule
from duetime.engine.checks import check_id
from duetime.engine.herald import profiles
from duetime.model.instant import to_datetime
from duetime.model.job import Job, JobFilter, State
from duetime.model.lease import NodeId
from duetime.model.limit import Bound
from duetime.model.why import DAY, Fleet, Scene, Why, explain
from duetime.model.why_schedules import explain_schedule
from duetime.store import ClaimRequest, Lane

NOBODY = NodeId(0)
FAR = 3_650 * DAY  # beyond it nothing falls due that could be taken for the instant at which a rate allows the next start
MOST_LOOKED_AT = 1_000
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
        return Reason(found.code, found.why, None if found.since is None else to_datetime(found.since), found.remedy)


class WhyOperations(Client):
    async def why_job(self, job_id: UUID | str) -> Reason:
        """One sentence that explains the present state of a job."""
        job = await self.read_job(check_id(job_id))
        scene = Scene(job, await self._fleet(), await self._store.list_attempts(job.id))
        if job.state is State.PENDING and job.due_at <= scene.now:
            scene = await self._hindrances(scene)
        return Reason.of(explain(scene))

    async def why_schedule(self, reference: str) -> Reason:
        """One sentence that explains when a schedule fires next, or why it does not. By name or id."""
        self._require_open()
        schedule = await find_schedule(self._store, self._tenant, reference)
        versions = await self._store.list_versions(self._tenant, schedule.draft.name, LATEST_CHANGES) if schedule.paused else []
        return Reason.of(explain_schedule(schedule, await self._fleet(), versions))

    async def _fleet(self) -> Fleet:
        nodes, said = await self._store.nodes(), await profiles(self._store)
        return Fleet(await self._store.time(), nodes, said)

    async def _hindrances(self, scene: Scene) -> Scene:
        """All that can hold up a job that is due."""
        job = scene.job
        queue = next((one for one in await self._store.queues() if one.name == job.queue), None)
        count = next((one for one in await self._store.count_jobs() if one.queue == job.queue), None)
        bound = self._bound(job, scene.fleet)
        due = JobFilter(self._tenant, states=PENDING, queue=job.queue, due_before=scene.now + 1)
        scene = replace(
            scene,
            queue=queue,
            running_in_queue=0 if count is None else count.running,
            due_in_queue=await self._store.count_matching(due, MOST_LOOKED_AT),
            blocker=await self._blocker(job),
            bound=bound,
        )
        if bound is not None and bound.most is not None:
            scene = await self._at_gate(scene)
        if (queue is not None and queue.rate is not None) or (bound is not None and bound.rate is not None):
            lanes, bounds = (Lane(job.queue, job.priority, 0),), () if bound is None else (bound,)
            asked = ClaimRequest(NOBODY, lanes, (job.target,), room=1, prefetch=FAR, bounds=bounds)
            scene = replace(scene, rate_until=await self._store.next_due(asked))
        return scene

    def _bound(self, job: Job, fleet: Fleet) -> Bound | None:
        """What the code of the nodes says about its gate; the code of this process, where they have not said."""
        if job.gate is None:
            return None
        task = self.tasks.get(job.target)
        own = None if task is None else task.options.limit
        return fleet.bound(job.target) or (None if own is None else Bound(job.target, own.most, own.parsed_rate))

    async def _blocker(self, job: Job) -> Job | None:
        """The job of the same schedule that has started and not finished."""
        if job.overlap is None or job.attempt > 0:
            return None
        for states in (RUNNING, PENDING):
            wanted = JobFilter(self._tenant, states=states, schedule=job.schedule)
            for other in await self._store.list_jobs(wanted, MOST_LOOKED_AT):
                if other.attempt > 0 and other.schedule_id == job.schedule_id:
                    return other
        return None

    async def _at_gate(self, scene: Scene) -> Scene:
        """Jobs of other tenants count, and are not named."""
        job = scene.job
        wanted = JobFilter(self._tenant, states=RUNNING, target=job.target)
        own = [other for other in await self._store.list_jobs(wanted, MOST_LOOKED_AT) if other.gate == job.gate]
        at_gate = len(own)
        for node in scene.fleet.nodes:
            if node.running:
                held = await self._store.held(node.id)
                at_gate += sum(other.gate == job.gate and other.tenant != self._tenant for other in held)
        return replace(scene, at_gate=at_gate, gate_jobs=own)

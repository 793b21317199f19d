"""The reaper: finds dead nodes and settles their jobs as lost, which does not count as a failure of the task.
It also times out external jobs whose report is overdue."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.engine.run.perform import decide
from duetime.invoker import Handler, Policies
from duetime.model.events import AttemptsSettled, JobsRecovered, NodesExpired
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, Delivery, Ending, Outcome
from duetime.model.lease import NodeId
from duetime.model.retry import Retry
from duetime.model.settle import QUARANTINE_LOSSES, Settlement, recent_losses
from duetime.observer import Observers
from duetime.store import OfDeadNodes, PastDeadline, Store

REAP_INTERVAL = SECOND * 3 // 10
BATCH = 500
CHECK_JOBS_EVERY = 5  # ticks, also if no node died: a claim may commit after its node was declared dead
NO_REPORT = "no report came before the deadline"
# For a target that this node does not know; the job's own policies come first
DEFAULT_POLICIES = Policies(Retry(), None, Delivery.AT_LEAST_ONCE)
NO_HANDLERS: Mapping[str, Handler] = MappingProxyType({})
UNKNOWN_TARGET_GRACE = 30 * SECOND  # a node that knows the target and its retry policy goes first


class Reaper:
    name = "reaper"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: NodeId,
        observers: Observers,
        handlers: Mapping[str, Handler] = NO_HANDLERS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._observers = observers
        self._handlers = handlers
        self._ticks = 0

    async def run_once(self) -> Micros:
        expired = await self._store.expire_nodes(self._node)
        failpoint("reaper.after_expire")
        if expired:
            self._observers(NodesExpired(tuple(expired)))
        if expired or self._ticks % CHECK_JOBS_EVERY == 0:
            await self._recover()
        if self._ticks % CHECK_JOBS_EVERY == 0:
            await self._time_out()
        self._ticks += 1
        return REAP_INTERVAL

    async def _recover(self) -> None:
        while orphans := await self._store.running_jobs(OfDeadNodes(), BATCH):
            lost = [await self._lost(job) for job in orphans]
            failpoint("reaper.before_settle")
            refused = set((await self._store.settle(lost)).refused)
            written = [pair for pair in zip(lost, orphans, strict=True) if pair[0].id not in refused]
            self._observers(
                JobsRecovered(len(written), [one for one, _ in written], [job for _, job in written])
            )
            await self._hint(orphans)
            if refused:
                return  # another reaper settles the same jobs

    async def _time_out(self) -> None:
        """Settle overdue external jobs as timed out; their policies decide whether they are retried."""
        while late := await self._store.running_jobs(PastDeadline(), BATCH):
            mine = [job for job in late if self._may_time_out(job)]
            settlements = [self._timed_out(job) for job in mine]
            refused = set((await self._store.settle(settlements)).refused) if mine else set()
            written = [pair for pair in zip(settlements, mine, strict=True) if pair[0].id not in refused]
            if written:
                self._observers(AttemptsSettled([one for one, _ in written], [job for _, job in written]))
                await self._hint(mine)
            if refused or len(mine) < len(late):
                return

    def _may_time_out(self, job: Claimed) -> bool:
        return job.target in self._handlers or self._clock.now() - job.due_at > UNKNOWN_TARGET_GRACE

    def _timed_out(self, job: Claimed) -> Settlement:
        outcome = Outcome(Ending.TIMED_OUT, error=NO_REPORT, problem=TimeoutError(NO_REPORT))
        return decide(job, outcome, self._policies(job), None, self._clock)

    async def _hint(self, jobs: list[Claimed]) -> None:
        await self._store.hint(
            [
                JobHint(queue, priority, 0, tenant)
                for queue, priority, tenant in sorted({(job.queue, job.priority, job.tenant) for job in jobs})
            ]
        )

    async def _lost(self, job: Claimed) -> Settlement:
        if job.losses >= QUARANTINE_LOSSES:
            attempts = await self._store.list_attempts(job.id)
            job = job._replace(losses=recent_losses(job, attempts, self._clock.now()))
        outcome = Outcome(Ending.LOST, error="the worker died or lost its lease")
        return decide(job, outcome, self._policies(job), None, self._clock)

    def _policies(self, job: Claimed) -> Policies:
        handler = self._handlers.get(job.target)
        return DEFAULT_POLICIES if handler is None else handler.policies

"""The reaper: finds nodes that died and gives their jobs back, each as a lost attempt that is not the task's failure; and attempts that
were handed over and of which no report came in time."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.engine.perform import decide
from duetime.invoker import Handler, Policies
from duetime.model.attempt import Ending, Outcome
from duetime.model.events import AttemptsSettled, JobsRecovered, NodesBuried
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, Delivery
from duetime.model.lease import NodeId
from duetime.model.retry import Retry
from duetime.model.settle import Settlement
from duetime.observer import Observers
from duetime.store import Store

TURN = SECOND * 3 // 10
BATCH = 500
ORPHANS_EVERY = 5  # turns; a claim may commit after its node was declared dead
NO_REPORT = "no report came before the deadline"
# Of a target that nobody here knows, and whose jobs leave out what these say.
OUTSIDE = Policies(Retry(), None, Delivery.AT_LEAST_ONCE)
NO_HANDLERS: Mapping[str, Handler] = MappingProxyType({})
FOR_THOSE_WHO_KNOW = 30 * SECOND  # a node that knows the target, and how it is to be tried again, has the first go


class Reaper:
    name = "reaper"

    def __init__(
        self, store: Store, clock: Clock, node: NodeId, observers: Observers, handlers: Mapping[str, Handler] = NO_HANDLERS
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._observers = observers
        self._handlers = handlers
        self._turns = 0

    async def run_once(self) -> Micros:
        buried = await self._store.bury(self._node)
        failpoint("reaper.after_bury")
        if buried:
            self._observers(NodesBuried(tuple(buried)))
        if buried or self._turns % ORPHANS_EVERY == 0:
            await self._recover()
        if self._turns % ORPHANS_EVERY == 0:
            await self._time_out()
        self._turns += 1
        return TURN

    async def _recover(self) -> None:
        while orphans := await self._store.orphans(BATCH):
            lost = [self._lost(job) for job in orphans]
            failpoint("reaper.before_settle")
            refused = set(await self._store.settle(lost))
            written = [pair for pair in zip(lost, orphans, strict=True) if pair[0].id not in refused]
            self._observers(JobsRecovered(len(written), [one for one, _ in written], [job for _, job in written]))
            await self._tell(orphans)
            if refused:
                return  # another reaper is at it

    async def _time_out(self) -> None:
        """Attempts that were handed over and are overdue: timed out, and what follows is up to their policies."""
        while late := await self._store.overdue(BATCH):
            mine = [job for job in late if self._may_time_out(job)]
            settlements = [self._timed_out(job) for job in mine]
            refused = set(await self._store.settle(settlements)) if mine else set()
            written = [pair for pair in zip(settlements, mine, strict=True) if pair[0].id not in refused]
            if written:
                self._observers(AttemptsSettled([one for one, _ in written], [job for _, job in written]))
                await self._tell(mine)
            if refused or len(mine) < len(late):
                return

    def _may_time_out(self, job: Claimed) -> bool:
        return job.target in self._handlers or self._clock.now() - job.due_at > FOR_THOSE_WHO_KNOW

    def _timed_out(self, job: Claimed) -> Settlement:
        handler = self._handlers.get(job.target)
        outcome = Outcome(Ending.TIMED_OUT, error=NO_REPORT, problem=TimeoutError(NO_REPORT))
        return decide(job, outcome, OUTSIDE if handler is None else handler.policies, None, self._clock)

    async def _tell(self, jobs: list[Claimed]) -> None:
        await self._store.hint([JobHint(queue, priority, 0) for queue, priority in sorted({(job.queue, job.priority) for job in jobs})])

    def _lost(self, job: Claimed) -> Settlement:
        return decide(job, Outcome(Ending.LOST, error="the worker died or lost its lease"), OUTSIDE, None, self._clock)

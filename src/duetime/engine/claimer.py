"""Claimer and Sweeper: they bring due jobs to the worker. Sleep until the next due time or a hint; never poll in a busy loop."""

from __future__ import annotations

from duetime.clock import Clock
from duetime.engine.lanes import ANY_QUEUE, Lanes
from duetime.engine.worker import Worker
from duetime.errors import StoreError
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.store import ClaimRequest, JobHint, Store

BATCH = 1_000
PREFETCH = SECOND // 5
LEAD = SECOND // 20  # how long before the next due time to claim: the prefetch then takes many at once
AFTER_SWEEP = SECOND // 100
EVERYTHING = JobHint(ANY_QUEUE, 0, 0)
LOOK_AGAIN = SECOND  # hints may be lost
FRESH_CLOCK = 2 * SECOND
LONGEST_BETWEEN_SWEEPS = 5 * SECOND  # a sweep that took long because the store stood still must not put off the next one for minutes


class Claimer:
    """Claims what is due or nearly so, as much as the worker has room for."""

    name = "claimer"

    def __init__(self, store: Store, clock: Clock, worker: Worker, lanes: Lanes, node: NodeId, targets: tuple[str, ...]) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._lanes = lanes
        self._node = node
        self._targets = targets
        self.wake_at: Micros = 0
        self.hungry = False  # out of room: wake me when something was settled

    async def run_once(self) -> Micros | None:
        if self._worker.doubtful:
            await self._recall()
        self._worker.arm()
        room = min(BATCH, self._worker.room)
        self.hungry = room <= 0
        if self.hungry or not self._worker.may_start():
            return AFTER_SWEEP if self._worker.sweeping else LOOK_AGAIN
        self.wake_at = 1 << 62
        jobs = await _claim(self._store, self._worker, self._request(room))
        now = self._clock.now()
        self._lanes.claimed(jobs, now)
        if len(jobs) >= room:
            return 0
        self._lanes.exhausted(now)
        return await self._until_next()

    def heard(self, hint: JobHint) -> bool:
        """Whether to claim now rather than at the time planned."""
        self._lanes.heard(hint)
        return hint.queue == ANY_QUEUE or hint.due_at - LEAD < self.wake_at

    async def _recall(self) -> None:
        """Claimed, and the reply lost: the store knows what this node holds. While the sweeper waits for a reply of its own, the answer
        would be ambiguous; the next turn asks again."""
        held = await self._store.held(self._node)
        if not self._worker.sweeping:
            self._worker.give_back_strangers(held)
            self._worker.doubtful = False

    async def _until_next(self) -> Micros:
        next_due = await self._store.next_due(self._request(1))
        now = self._clock.now()
        self.wake_at = min(self.wake_at, now + LOOK_AGAIN, now + LOOK_AGAIN if next_due is None else next_due - LEAD)
        return max(0, self.wake_at - now)

    def _request(self, room: int) -> ClaimRequest:
        return ClaimRequest(self._node, self._lanes.bounded(), self._targets, room, PREFETCH)


class Sweeper:
    """Looks at everything now and then: what lies below the bounds, what a lost hint would have told, queues that are new."""

    name = "sweeper"

    def __init__(
        self, store: Store, clock: Clock, worker: Worker, lanes: Lanes, node: NodeId, targets: tuple[str, ...], only: tuple[str, ...]
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._lanes = lanes
        self._node = node
        self._targets = targets
        self._only = only

    async def run_once(self) -> Micros:
        began = self._clock.monotonic()
        if not self._only:
            self._lanes.add(queue for queue in await self._store.queues() if queue not in self._lanes)
        room = min(BATCH, self._worker.room)
        if room <= 0:
            self._lanes.heard(EVERYTHING)  # then the next claim there is room for shall look at everything
        elif self._worker.may_start():
            await self._sweep(room)
        if self._clock.sample_age > FRESH_CLOCK:
            await self._clock.follow(self._store.time)
        return min(max(SECOND, 20 * (self._clock.monotonic() - began)), LONGEST_BETWEEN_SWEEPS)

    async def _sweep(self, room: int) -> None:
        request = ClaimRequest(self._node, self._lanes.unbounded(), self._targets, room, prefetch=0, sweep=True)
        self._worker.sweeping = True
        try:
            await _claim(self._store, self._worker, request)
        finally:
            self._worker.sweeping = False


async def _claim(store: Store, worker: Worker, request: ClaimRequest) -> list[Claimed]:
    """Hands what was claimed to the worker. The room is reserved meanwhile; a lost reply leaves in doubt what the node holds."""
    worker.reserved += request.room
    try:
        jobs = await store.claim(request)
    except StoreError:
        worker.doubtful = True
        raise
    finally:
        worker.reserved -= request.room
    worker.take(jobs)
    return jobs

"""Jobs without a claim: a worker that has room after a claim offers a slot, and a job that is stored alone is
assigned to the worker whose offer is the oldest. The job comes in as a message, a claim's round trip earlier,
and no other idle worker is woken for it.

The job runs under the node from the assignment on, as after a claim. The next claim of the worker returns
it; one that no claim takes is given back. A message may be lost: the next offer returns its job."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any
from uuid import UUID

from duetime.clock import pause
from duetime.errors import DuetimeError
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, Delivery, Ending, Outcome
from duetime.model.lease import NodeId
from duetime.model.retry import Retry
from duetime.model.settle import settle
from duetime.store import ClaimRequest
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.notifier import RedisNotifier
from duetime.stores.redis.rows import claimed_of, lane_name
from duetime.stores.redis.settle import RedisSettlements

# An idle worker claims every second, and so makes a new offer. If it is suspended, or cannot be reached, it
# can be assigned one job within this time.
OFFER_HOLDS = SECOND * 3 // 2
GIVE_BACK_AFTER = 0.25  # seconds: the worker has become busy, or stops
MAX_LANES = 100  # an offer for more would cost more than it saves
ID_SIZE = 16


class RedisOffers:
    """Of one process. It has one offer at a time, and so at most one job that no claim has taken."""

    def __init__(
        self, connection: RedisConnection, notifier: RedisNotifier, settlements: RedisSettlements
    ) -> None:
        self._connection = connection
        self._notifier = notifier
        self._settlements = settlements
        self._node: NodeId | None = None
        self.assigned: Claimed | None = None  # a job that came in, until a claim takes it
        self._last = b""  # the id of the last one
        self._listed: frozenset[UUID] = frozenset()  # what a caller was told that the node runs
        self._tasks: set[asyncio.Task[None]] = set()

    def make(self, request: ClaimRequest) -> None:
        """Offer a slot for jobs like those of this claim, which has found less than it had room for."""
        if self._tasks or self.assigned is not None or not self._notifier.is_listening:
            return
        if len(request.lanes) <= MAX_LANES:
            self._start(self._offer(request))

    def take(self, request: ClaimRequest) -> list[Claimed]:
        """The assigned job, if this claim asks for such jobs."""
        job = self.assigned
        if job is None or request.node != self._node or job.target not in request.targets:
            return []
        lane = (job.queue, job.priority, job.tenant)
        if all((one.queue, one.priority, one.tenant) != lane for one in request.lanes):
            return []
        self.assigned = None
        return [job]

    def without_assigned(self, held: list[Claimed]) -> list[Claimed]:
        """Of the jobs that a node runs, those that a claim has returned. Callers release what they do not
        know: a job that comes in only now is given back, too."""
        self._listed = frozenset(job.id for job in held)
        return [job for job in held if self.assigned is None or job.id != self.assigned.id]

    async def withdraw(self, node: NodeId) -> None:
        """The node leaves."""
        if node == self._node:
            self._node = None
            await self._give_back()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _offer(self, request: ClaimRequest) -> None:
        if request.node != self._node:
            self._node, self._last = request.node, b""
        names = (lane_name(lane.queue, lane.priority, lane.tenant) for lane in request.lanes)
        lanes = "".join(f"\0\0{name}\0\0" for name in names)
        targets = "".join(f"\0{target}\0" for target in request.targets)
        with suppress(DuetimeError):  # the worker claims as without an offer
            await self._notifier.hear(request.node, self._receive)
            lost = await self._connection.run("offer", request.node, OFFER_HOLDS, self._last, lanes, targets)
            if lost is not None:
                self._come_in(request.node, *lost)

    def _receive(self, node: NodeId, message: bytes) -> None:
        self._come_in(node, message[:ID_SIZE], message[ID_SIZE:])

    def _come_in(self, node: NodeId, job_id: bytes, row: bytes) -> None:
        if node != self._node or job_id == self._last:
            return  # of a node that has left; or as a message and by an offer
        self._last = job_id
        self.assigned = job = claimed_of(job_id, row, None)
        if job.id in self._listed:
            self._expire(job)
        else:
            self._notifier.deliver([JobHint(job.queue, job.priority, job.due_at, job.tenant)])
            asyncio.get_running_loop().call_later(GIVE_BACK_AFTER, self._expire, job)

    def _expire(self, job: Claimed) -> None:
        if self.assigned is job:
            self._start(self._give_back())

    async def _give_back(self) -> None:
        while self.assigned is not None:
            job, self.assigned = self.assigned, None
            try:
                now = await self._connection.time()
                released = Outcome(Ending.RELEASED)
                release = settle(job, released, Retry(), Delivery.AT_LEAST_ONCE, None, now, 0)
                await self._settlements.settle([release], None)
            except DuetimeError:
                self.assigned = job
                await pause(GIVE_BACK_AFTER)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

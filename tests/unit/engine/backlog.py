"""For tests of the claimer: a store with more jobs than anybody can take, and a claimer whose worker starts nothing."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from duetime.engine.brake import Brake
from duetime.engine.claimer import Asked, Claimer, Sweeper
from duetime.engine.lanes import Lanes
from duetime.engine.worker import Worker
from duetime.invoker import Context, Policies
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, Delivery
from duetime.model.lease import NodeId
from duetime.model.limit import Bound, Limit, Queue, Rate
from duetime.model.retry import Retry
from duetime.store import ClaimRequest, Store
from tests.unit.engine.paper import PaperStore, job, make_desk, virtual_clock

ASKED = Asked(NodeId(1), ("task",), (Bound("task", 2, Rate(5, 1_000)),))
SLOTS = 8


class Never:
    policies = Policies(Retry(), None, Delivery.AT_LEAST_ONCE)
    limit: Limit | None = None

    async def invoke(self, context: Context, payload: bytes) -> Any:
        return None


class Backlog:
    """Jobs waiting in lanes by (queue, priority): more than anybody can take, or exactly so many."""

    def __init__(self, **waiting: int) -> None:
        self.waiting = {int(name[1:]): count for name, count in waiting.items()}
        self.requests: list[ClaimRequest] = []
        self.following: int | None = None
        self._numbers = iter(range(1, 1_000_000))

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        self.requests.append(request)
        jobs: list[Claimed] = []
        for lane in request.lanes:
            while len(jobs) < request.room and self.waiting.get(lane.priority, 0):
                self.waiting[lane.priority] -= 1
                jobs.append(job()._replace(id=UUID(int=next(self._numbers)), priority=lane.priority))
        return jobs

    async def next_due(self, request: ClaimRequest) -> int | None:
        self.requests.append(request)
        return self.following

    async def time(self) -> int:
        return 0

    async def queues(self) -> list[Queue]:
        return [Queue("default"), Queue("mail", paused=True), Queue("bulk", most=2), Queue("slow", rate=Rate(1, SECOND))]


async def accept(job_id: UUID, attempt: int) -> bool:
    return True


class Bench:
    """A claimer whose worker starts nothing: the room is emptied by hand."""

    def __init__(self, store: Backlog, load: float = 0.0, rate: Rate | None = ASKED.bounds[0].rate) -> None:
        self.clock = virtual_clock()
        self.store = store
        self.worker = Worker({"task": Never()}, self.clock, SLOTS, lambda: None, accept, make_desk(PaperStore(), clock=self.clock))
        self.worker._kick = lambda: None  # type: ignore[method-assign]
        self.lanes = Lanes(["default"])
        self.brake = Brake(lambda: 0, lambda: load, 1.0)
        asked = ASKED._replace(bounds=(Bound("task", 2, rate),))
        self.peers = 0
        self.claimer = Claimer(cast(Store, store), self.clock, self.worker, self.lanes, self.brake, asked, lambda: self.peers)
        self.called = 0  # times a sweeper told the claimer that there is more

    def sweeper(self, *only: str) -> Sweeper:
        return Sweeper(cast(Store, self.store), self.clock, self.worker, self.lanes, self.brake, ASKED, only, self._call)

    def _call(self) -> None:
        self.called += 1

    async def turns(self, count: int) -> list[list[int]]:
        """The priorities that each turn brought."""
        brought = []
        for _ in range(count):
            await self.claimer.run_once()
            brought.append([taken.priority for taken in self.worker._withdraw(lambda _: True)])
            self.worker.held = 0
        return brought

"""For tests of claimer and sweeper: a store with more jobs than a node can take, and a worker that starts
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from duetime.engine.fetch.claimer import Backpressure, Claimer, Fetch
from duetime.engine.fetch.cursors import ClaimCursors
from duetime.engine.fetch.sweeper import Sweeper
from duetime.engine.run.capacity import Capacity
from duetime.engine.run.outbox import Outbox
from duetime.engine.run.start_check import StartCheck
from duetime.engine.run.worker import Worker
from duetime.invoker import Context, Handler, Policies
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, Delivery
from duetime.model.lease import NodeId
from duetime.model.limit import ALL_QUEUES, Limit, Queue, QueueFilter, Rate
from duetime.model.retry import Retry
from duetime.store import ClaimRequest, Claims, Due, OfDeadNodes, OfNode, PastDeadline, Record, Store
from tests.unit.engine.fake_store import FakeStore, job, make_writer, virtual_clock

NODE = NodeId(1)
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

    async def claim(self, request: ClaimRequest) -> Claims:
        self.requests.append(request)
        jobs: list[Claimed] = []
        for lane in request.lanes:
            while len(jobs) < request.room and self.waiting.get(lane.priority, 0):
                self.waiting[lane.priority] -= 1
                jobs.append(job()._replace(id=UUID(int=next(self._numbers)), priority=lane.priority))
        return Claims(jobs)

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        return []

    async def due_jobs(self, request: ClaimRequest) -> Due:
        self.requests.append(request)
        return Due([], self.following)

    async def time(self) -> int:
        return 0

    async def queues(self, counted: bool = False, wanted: QueueFilter = ALL_QUEUES) -> list[Queue]:
        return [
            Queue("mail", paused=True, lanes=((5, "default"),)),
            Queue("bulk", max_running=2),
            Queue("slow", rate=Rate(1, SECOND)),
        ]

    async def list_records(
        self, kind: str, tenant: str | None, limit: int, after: Any = None
    ) -> list[Record]:
        return []

    async def put_record(self, kind: str, tenant: str, key: str, value: bytes, *, expires_at: int) -> int:
        return 1


async def accept(job_id: UUID, attempt: int) -> bool:
    return True


def make_worker(
    clock: Any, slots: int = SLOTS, handler: Handler | None = None, **options: Any
) -> tuple[Worker, Outbox]:
    """A worker that may always start, and its outbox."""
    outbox = Outbox(lambda: None)
    capacity = Capacity(slots, lambda: True, clock.monotonic)
    record_start = options.pop("record_start", accept)
    writer = options.pop("writer", None) or make_writer(FakeStore(), clock=clock)
    check = StartCheck(cast(Store, FakeStore()), clock)
    return Worker(
        {"task": handler or Never()}, clock, capacity, outbox, record_start, writer, check, **options
    ), outbox


class Bench:
    """A claimer whose worker starts nothing: the room is emptied by hand."""

    def __init__(self, store: Backlog, load: float = 0.0) -> None:
        self.clock = virtual_clock()
        self.store = store
        self.worker, self.outbox = make_worker(self.clock)
        self.capacity = self.worker.capacity
        self.worker._kick = lambda: None  # type: ignore[method-assign]
        self.cursors = ClaimCursors(["default"])
        self.capacity._tenants = self.cursors.tenants
        backpressure = Backpressure(lambda: 0, lambda: load, 1.0)
        self.fetch = Fetch(cast(Store, store), self.worker, backpressure, NODE, ("task",))
        self.peers = 0
        self.claimer = Claimer(self.fetch, self.clock, self.cursors, lambda: self.peers)
        self.called = 0  # times a sweeper told the claimer that there is more

    def sweeper(self, *only: str) -> Sweeper:
        if only:
            self.cursors._fixed = True
        return Sweeper(self.fetch, self.clock, self.cursors, self.outbox, self._call)

    def starts_soon(self, number: int) -> None:
        """As if so many jobs had been measured to start within a tenth of a second."""
        self.capacity.rate.soon = lambda: number  # type: ignore[method-assign]

    def empty(self, taken: Sequence[Claimed]) -> None:
        self.capacity.release(taken)

    def _call(self) -> None:
        self.called += 1

    async def turns(self, count: int) -> list[list[int]]:
        """The priorities that each turn brought."""
        brought = []
        for _ in range(count):
            await self.claimer.run_once()
            taken = self.worker._withdraw(lambda _: True)
            brought.append([job.priority for job in taken])
            self.empty(taken)
        return brought

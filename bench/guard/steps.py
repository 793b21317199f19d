"""The measured program: submits jobs, claims them, runs them and settles them, each step by itself and in one
thread as far as the store allows.

`python -m bench.guard.steps STORE ROUNDS`; 0 rounds: one, counted by callgrind."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from uuid import UUID

import uvloop

import duetime as dt
from bench.guard import JOBS, STEPS
from bench.guard.callgrind import Callgrind
from duetime.engine.run.capacity import Capacity
from duetime.engine.run.checkpoints import CheckpointWriter
from duetime.engine.run.outbox import Outbox
from duetime.engine.run.settler import Settler
from duetime.engine.run.start_check import StartCheck
from duetime.engine.run.worker import Worker
from duetime.invokers.resources import ResourceBox
from duetime.model.instant import SECOND
from duetime.model.job import DEFAULT_QUEUE, DEFAULT_TENANT, Claimed
from duetime.model.lease import NodeDraft, NodeId
from duetime.observer import Observers
from duetime.store import ClaimRequest, Lane, Successors

BATCH = 100  # claimed or run together
WARM_UP = 2  # rounds: caches fill, connections open, statements are prepared
PRIORITY = 5

app = dt.App(sys.argv[1])


@app.task("noop")
async def noop(ctx: dt.Context, n: int) -> None:
    pass


class Steps:
    def __init__(self, node: NodeId) -> None:
        self.store, self.node = app.store, node
        self.claimed: list[Claimed] = []
        self.outbox = Outbox(lambda: None)
        checkpoints = CheckpointWriter(self.store, app.clock, node, lambda: True, lambda *_: None, None)
        self.worker = Worker(
            {"noop": app._handler(noop, ResourceBox())},
            app.clock,
            Capacity(JOBS, lambda: True, app.clock.monotonic),
            self.outbox,
            _accept,
            checkpoints,
            StartCheck(self.store, app.clock),
        )
        takes = Successors(node, 0, (DEFAULT_QUEUE,), ("noop",))
        self.settler = Settler(
            self.store, self.worker, self.outbox, Observers(), lambda ids: None, lambda: takes
        )

    async def submit(self) -> None:
        for number in range(JOBS):
            await app.submit(noop, n=number)

    async def claim(self) -> None:
        lane = Lane(DEFAULT_QUEUE, PRIORITY, 0, DEFAULT_TENANT)
        request = ClaimRequest(self.node, (lane,), ("noop",), BATCH, 0)
        for _ in range(JOBS // BATCH):
            self.claimed += (await self.store.claim(request)).jobs

    async def run(self) -> None:
        for start in range(0, JOBS, BATCH):
            self.worker.take(self.claimed[start : start + BATCH])
            while len(self.outbox) < start + BATCH:
                await asyncio.sleep(0)

    async def settle(self) -> None:
        self.claimed.clear()
        while len(self.outbox):
            await self.settler.run_once()


async def _accept(job_id: UUID, attempt: int) -> bool:
    return True


async def main(rounds: int) -> None:
    await app.migrate()
    async with app:
        node = await app.store.join(NodeDraft("guard", ("worker",), "1"), 3_600 * SECOND)
        made = Steps(node)
        steps: list[Callable[[], Awaitable[None]]] = [getattr(made, name) for name in STEPS]
        for _ in range(rounds or WARM_UP):
            for step in steps:
                await step()
        if not rounds:
            await count(steps)


async def count(steps: list[Callable[[], Awaitable[None]]]) -> None:
    counter = Callgrind()
    counter.start()
    for step in steps:
        gc.collect()
        counter.zero()
        await step()
        counter.dump(step.__name__)


if __name__ == "__main__":
    gc.disable()
    sys.setswitchinterval(1_000)  # threads change only where they wait
    asyncio.Runner(loop_factory=uvloop.new_event_loop).run(main(int(sys.argv[2])))

"""A program with a real broker: jobs on a SQLite file, their tickets through the broker, and a record of what
ran. `FaultyQueue` does to messages what networks and operators do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import duetime as dt
from duetime.engine.node.node import Node
from duetime.model.events import (
    BrokerBack,
    BrokerLost,
    Event,
    MessagesDropped,
    TicketsPushed,
    TicketsReceived,
)
from duetime.model.instant import Micros
from duetime.queue import Message, Received, TicketQueue
from duetime.testing.queue_conformance import opened

PATIENCE = 60.0  # seconds, on a busy machine
Change = Callable[[Sequence[Message]], Sequence[Message]]


class Scene:
    def __init__(self, folder: Path, connect: Callable[[], TicketQueue]) -> None:
        self.connect = connect
        self.events: list[Event] = []
        self.effects: Counter[int] = Counter()
        self.go_on = asyncio.Event()  # for tasks that hold
        self._url = f"sqlite:///{folder}/jobs.db"
        self.app = self.program()

    def program(self) -> dt.App:
        """One process of the fleet."""
        app = dt.App(self._url, queue=self.connect, observers=[self.events.append])

        @app.task("work")
        async def work(number: int) -> None:
            self.effects[number] += 1

        @app.task("hold")
        async def hold(number: int) -> None:
            self.effects[number] += 1
            await self.go_on.wait()

        return app

    @asynccontextmanager
    async def running(self, **options: object) -> AsyncIterator[Node]:
        """With the broker."""
        app = self.program()
        await app.migrate()
        async with app.running(**options) as node:
            await until(lambda: node.broker_up is True)
            yield node

    async def submit(self, count: int, task: str = "work") -> list[dt.JobHandle]:
        first = max(self.effects, default=-1) + 1
        work = [dt.NewJob(task, {"number": number}) for number in range(first, first + count)]
        return list(await self.app.submit_many(work))

    async def finish(self, jobs: Sequence[dt.JobHandle]) -> None:
        """Every job succeeds, at the first attempt."""
        for job in jobs:
            await job.wait(timeout=f"{PATIENCE}s")
        assert {(str(job.state), job.attempt) for job in jobs} == {("succeeded", 1)}
        assert set(self.effects.values()) == {1}

    async def work_through_the_broker(self) -> None:
        """Jobs come by message, sooner or later: a worker that found no dispatcher looks into the store."""
        before = self.received
        async with asyncio.timeout(PATIENCE):
            while self.received == before:
                await self.finish(await self.submit(1))

    async def until_depth(self, holds: Callable[[int], bool]) -> None:
        """Until the messages in the broker are so many."""
        async with opened(self.connect()) as queue, asyncio.timeout(PATIENCE):
            while not holds(sum((await queue.depth(["default"])).values())):
                await asyncio.sleep(0.02)

    @property
    def pushed(self) -> int:
        return sum(event.tickets for event in self.events if isinstance(event, TicketsPushed))

    @property
    def received(self) -> int:
        return sum(event.tickets for event in self.events if isinstance(event, TicketsReceived))

    @property
    def dropped(self) -> int:
        return sum(event.count for event in self.events if isinstance(event, MessagesDropped))

    def outages(self, part: str) -> list[type]:
        """What a part of the node reported about the broker."""
        told = [event for event in self.events if isinstance(event, BrokerLost | BrokerBack)]
        return [type(event) for event in told if event.part == part]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)


class FaultyQueue:
    """A connection that pushes other messages than it should."""

    def __init__(self, queue: TicketQueue, change: Change) -> None:
        self._queue = queue
        self._change = change

    async def push(self, messages: Sequence[Message]) -> None:
        await self._queue.push(self._change(messages))

    async def open(self) -> None:
        await self._queue.open()

    async def close(self) -> None:
        await self._queue.close()

    async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
        return await self._queue.receive(queues, limit, timeout)

    async def acknowledge(self, deliveries: Sequence[Received]) -> None:
        await self._queue.acknowledge(deliveries)

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        return await self._queue.depth(queues)

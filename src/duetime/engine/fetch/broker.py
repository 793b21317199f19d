"""A connection to the broker, and whether it works. Every failure of a driver counts as an outage: the store
has all jobs, and they must not wait for a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from duetime.errors import QueueUnavailable
from duetime.model.events import BrokerBack, BrokerLost
from duetime.model.instant import SECOND, Micros
from duetime.observer import Observers
from duetime.queue import Message, Received, TicketQueue

CALL_TIMEOUT = 5 * SECOND
RETRY_INTERVAL = SECOND
Result = TypeVar("Result")


class BrokerLink:
    def __init__(
        self,
        queue: TicketQueue,
        part: str,
        observers: Observers,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._queue = queue
        self._part = part
        self._observers = observers
        self._on_change = on_change
        self.up = False
        self._lost = False  # and reported

    async def connect(self) -> None:
        if self.up:
            return
        if self._lost:
            await self.close()  # a connection whose answers are lost would not know that
        await self._call(self._queue.open())
        self.up = True
        if self._lost:
            self._lost = False
            self._observers(BrokerBack(self._part))
        self._on_change()

    async def push(self, messages: Sequence[Message]) -> None:
        await self._call(self._queue.push(messages))

    async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
        return await self._call(self._queue.receive(queues, limit, timeout), timeout)

    async def acknowledge(self, deliveries: Sequence[Received]) -> None:
        await self._call(self._queue.acknowledge(deliveries))

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        return await self._call(self._queue.depth(queues))

    async def close(self) -> None:
        self.up = False
        with suppress(Exception):
            async with asyncio.timeout(CALL_TIMEOUT / SECOND):
                await self._queue.close()

    async def _call(self, work: Awaitable[Result], expected: Micros = 0) -> Result:
        try:
            async with asyncio.timeout((expected + CALL_TIMEOUT) / SECOND):
                return await work
        except TimeoutError:
            problem: Exception = QueueUnavailable(
                "the broker does not answer: see that it runs and can be reached"
            )
        except Exception as failure:
            problem = failure
        self.up = False
        if not self._lost:
            self._lost = True
            self._observers(BrokerLost(self._part, problem))
        self._on_change()
        raise (
            problem if isinstance(problem, QueueUnavailable) else QueueUnavailable(str(problem))
        ) from problem

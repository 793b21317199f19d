"""The broker as this process sees it: whether it answers, and how many messages it holds. Nothing of it is
stored."""

from __future__ import annotations

import asyncio
from functools import partial

from duetime.app.stats import TtlCache
from duetime.clock import Clock
from duetime.engine.fetch.broker import BrokerLink
from duetime.errors import QueueUnavailable
from duetime.model.instant import SECOND
from duetime.model.limit import MAX_QUEUES, Queue
from duetime.model.views import BrokerView, QueueMessages
from duetime.observer import Observers
from duetime.queue import TicketQueue
from duetime.store import Store

NO_BROKER = "the broker does not answer: workers claim jobs from the store until it does"
CACHE_TIME = 3 * SECOND
ANSWER_TIMEOUT = 2.0  # seconds: the reader of a page must not wait for a broker that is away


class BrokerReader:
    """One connection, made when it is first asked, for all readers of this process."""

    def __init__(
        self, queue: TicketQueue, address: str, store: Store, clock: Clock, observers: Observers
    ) -> None:
        self._link = BrokerLink(queue, "depth reader", observers)
        self._address = address
        self._store = store
        self._cache = TtlCache(clock, CACHE_TIME)

    async def read(self) -> BrokerView:
        queues: list[str] = await self._cache.get("queues", self._queues)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                depth: list[QueueMessages] = await self._cache.get("depth", partial(self._depth, queues))
        except (QueueUnavailable, TimeoutError):
            return BrokerView(address=self._address, remark=NO_BROKER)
        return BrokerView(address=self._address, up=True, depth=depth)

    async def close(self) -> None:
        await self._link.close()

    async def _queues(self) -> list[str]:
        found = await self._store.queues(counted=True)
        return [queue.name for queue in sorted(found, key=_due)[-MAX_QUEUES:]]

    async def _depth(self, queues: list[str]) -> list[QueueMessages]:
        await self._link.connect()
        found = await self._link.depth(queues)
        return [
            QueueMessages(queue=queue, priority=priority, messages=messages)
            for (queue, priority), messages in sorted(found.items(), key=lambda one: (one[0][0], -one[0][1]))
            if messages
        ]


def _due(queue: Queue) -> int:
    return 0 if queue.counts is None else queue.counts.due

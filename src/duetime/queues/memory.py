"""A broker inside the process: the reference driver for tests and simulations, with faults on demand."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context

from duetime.errors import QueueUnavailable
from duetime.model.instant import SECOND, Micros
from duetime.queue import Message, Received
from duetime.queues.wire import GROUPS, group_of

# What the network does with one message: the list of copies to deliver, each after so long.
Faults = Callable[[Message], Sequence[Micros]]


def deliver_once(_message: Message) -> Sequence[Micros]:
    return (0,)


class MemoryBroker:
    """What the connections of one process share: messages by queue and group of priorities."""

    def __init__(self, faults: Faults = deliver_once) -> None:
        self.faults = faults  # () loses a message, (0, 0) doubles it, others delay and so reorder
        self.is_down = False
        self._ready: dict[tuple[str, int], deque[Message]] = {}
        self._unacknowledged: Counter[tuple[str, int]] = Counter()
        self._late: Counter[tuple[str, int]] = Counter()
        self._waiting: dict[asyncio.Future[None], None] = {}  # in order: a simulation must repeat itself

    def check(self) -> None:
        if self.is_down:
            raise QueueUnavailable("the broker in memory was told to be down")

    def go_down(self) -> None:
        """Refuse everything until `come_back`. Messages stay."""
        self.is_down = True
        self._wake()

    def come_back(self) -> None:
        self.is_down = False

    def flush(self) -> None:
        """Lose every message that is not being handled."""
        self._ready.clear()

    def push(self, message: Message) -> None:
        for delay in self.faults(message):
            if delay:
                self._late[_place(message)] += 1
                loop = asyncio.get_running_loop()
                loop.call_later(delay / SECOND, self._arrive, message, context=Context())
            else:
                self.put(message)

    def put(self, message: Message, *, first: bool = False) -> None:
        lane = self._ready.setdefault(_place(message), deque())
        (lane.appendleft if first else lane.append)(message)
        self._wake()

    def take(self, queues: Sequence[str], limit: int) -> list[Message]:
        taken: list[Message] = []
        for place in ((queue, group) for group in GROUPS for queue in queues):
            lane = self._ready.get(place, ())
            while lane and len(taken) < limit:
                taken.append(lane.popleft())
                self._unacknowledged[place] += 1
        return taken

    def forget(self, message: Message) -> None:
        self._unacknowledged[_place(message)] -= 1

    def depth(self, queue: str) -> Mapping[tuple[str, int], int]:
        places = [(queue, group) for group in GROUPS]
        return {
            place: len(self._ready.get(place, ())) + self._unacknowledged[place] + self._late[place]
            for place in places
        }

    async def arrival(self, timeout: Micros) -> None:
        """Until a message comes, the broker goes down, or the time is over."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiting] = None
        try:
            async with asyncio.timeout(timeout / SECOND):
                await waiting
        except TimeoutError:
            return
        finally:
            del self._waiting[waiting]

    def _arrive(self, message: Message) -> None:
        self._late[_place(message)] -= 1
        self.put(message)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)


class MemoryQueue:
    """One connection to it."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._held: dict[int, Message] = {}  # by receipt: received, not acknowledged
        self._receipts = 0

    async def open(self) -> None:
        self._broker.check()

    async def close(self) -> None:
        self.drop()

    def drop(self) -> None:
        """As if the process had died."""
        held, self._held = self._held, {}
        for message in reversed(held.values()):
            self._broker.forget(message)
            self._broker.put(message, first=True)

    async def push(self, messages: Sequence[Message]) -> None:
        self._broker.check()
        for message in messages:
            self._broker.push(message)

    async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
        self._broker.check()
        taken = self._broker.take(queues, limit)
        if not taken and timeout > 0:
            await self._broker.arrival(timeout)
            self._broker.check()
            taken = self._broker.take(queues, limit)
        return [self._deliver(message) for message in taken]

    async def acknowledge(self, deliveries: Sequence[Received]) -> None:
        self._broker.check()
        for delivery in deliveries:
            message = self._held.pop(delivery.receipt, None)
            if message is not None:
                self._broker.forget(message)

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        self._broker.check()
        return {place: number for queue in queues for place, number in self._broker.depth(queue).items()}

    def _deliver(self, message: Message) -> Received:
        self._receipts += 1
        self._held[self._receipts] = message
        return Received(message, self._receipts)


def _place(message: Message) -> tuple[str, int]:
    return message.queue, group_of(message.priority)

"""The tests of the suite, and what they need to know about a broker."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Protocol
from uuid import UUID

import pytest

from duetime.errors import QueueUnavailable
from duetime.model.instant import SECOND
from duetime.queue import MAX_TICKETS, Message, Received, Ticket, TicketQueue

PATIENCE = 60.0  # seconds, on a busy machine
STEP = SECOND // 2
UNUSUAL_NAMES = ("mail.out", "Ärzte & Söhne", "a/b:c*>#%_", "x" * 200, "日" * 200)


class Broker(Protocol):
    """The server, as tests treat it."""

    keeps_order: bool  # within one queue and priority
    repeats: bool  # messages that are not acknowledged yet, when a receiver comes

    def queue(self) -> TicketQueue:
        """A new connection, not open yet."""
        ...

    def unreachable_queue(self) -> TicketQueue:
        """Its URL names a port where no server is."""
        ...

    async def push_foreign(self, queue: str, body: bytes) -> None:
        """A message that another program puts into this queue of the broker."""
        ...


class RepairableBroker(Broker, Protocol):
    async def restart(self) -> None: ...

    async def delete(self, queues: Collection[str]) -> None:
        """Everything of these queues is gone, as after an operator's mistake."""
        ...


class RealBroker(RepairableBroker, Protocol):
    """It has passwords, and messages survive its restart."""

    password: str

    def queue_with_wrong_password(self) -> TicketQueue: ...


def message(number: int, queue: str = "default", priority: int = 5) -> Message:
    return Message(queue, priority, (Ticket(UUID(int=number), 0),))


def numbers(deliveries: Iterable[Received]) -> list[int]:
    return [delivery.message.tickets[0].id.int for delivery in deliveries if delivery.message]


@asynccontextmanager
async def opened(queue: TicketQueue) -> AsyncIterator[TicketQueue]:
    await queue.open()
    try:
        yield queue
    finally:
        await queue.close()


async def receive_until(
    queue: TicketQueue, enough: Callable[[list[Received]], bool], queues: Collection[str] = ("default",)
) -> list[Received]:
    """Receive, without acknowledging, until it is enough."""
    received: list[Received] = []
    async with asyncio.timeout(PATIENCE):
        while not enough(received):
            received += await queue.receive(list(queues), 100, STEP)
    return received


async def receive_count(
    queue: TicketQueue, count: int, queues: Collection[str] = ("default",)
) -> list[Received]:
    received = await receive_until(queue, lambda so_far: len(so_far) >= count, queues)
    assert len(received) == count
    return received


async def until_depth(queue: TicketQueue, name: str, expected: int) -> None:
    """A broker may count late."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if sum((await queue.depth([name])).values()) == expected:
                return
            await asyncio.sleep(0.02)


async def until_it_works(call: Callable[[], Awaitable[None]]) -> None:
    """Repeat as a node does while the broker is away."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await call()
                return
            except QueueUnavailable:
                await asyncio.sleep(0.05)


class QueueConformance:
    many = 5000  # messages; fewer for a server that only stands for the real one and is slow

    @pytest.fixture
    async def broker(self) -> Broker:
        raise NotImplementedError("give the fixture `broker`")

    @pytest.fixture
    async def queue(self, broker: Broker) -> AsyncIterator[TicketQueue]:
        async with opened(broker.queue()) as queue:
            yield queue

    async def test_pushed_message_is_received_whole(self, queue: TicketQueue) -> None:
        tickets = tuple(Ticket(UUID(int=2**127 + number), number) for number in range(MAX_TICKETS))
        sent = Message("default", 7, tickets)
        await queue.push([sent])
        [delivery] = await receive_count(queue, 1)
        assert delivery.message == sent

    async def test_acknowledged_message_is_not_delivered_again(
        self, broker: Broker, queue: TicketQueue
    ) -> None:
        await queue.push([message(1), message(2)])
        received = await receive_count(queue, 2)
        await queue.acknowledge([delivery for delivery in received if numbers([delivery]) == [1]])
        await queue.close()
        async with opened(broker.queue()) as second:
            [again] = await receive_count(second, 1)
            assert numbers([again]) == [2]
            await second.acknowledge([again])
            assert await second.receive(["default"], 10, STEP) == []
            await until_depth(second, "default", 0)

    async def test_messages_keep_their_order(self, broker: Broker, queue: TicketQueue) -> None:
        await queue.push([message(number) for number in range(50)])
        received = numbers(await receive_count(queue, 50))
        assert sorted(received) == list(range(50))
        if broker.keeps_order:
            assert received == list(range(50))

    async def test_urgent_messages_come_first(self, queue: TicketQueue) -> None:
        await queue.push([message(priority, priority=priority) for priority in (0, 5, 9)])
        received: list[Received] = []
        async with asyncio.timeout(PATIENCE):
            while len(received) < 3:
                some = await queue.receive(["default"], 1, STEP)
                assert len(some) <= 1
                received += some
        assert numbers(received) == [9, 5, 0]

    async def test_receive_returns_at_most_the_limit(self, queue: TicketQueue) -> None:
        await queue.push([message(number, priority=number % 10) for number in range(30)])
        received: list[Received] = []
        async with asyncio.timeout(PATIENCE):
            while len(received) < 30:
                some = await queue.receive(["default"], 7, STEP)
                assert len(some) <= 7
                received += some
        assert sorted(numbers(received)) == list(range(30))

    async def test_receive_without_messages_ends_after_its_timeout(self, queue: TicketQueue) -> None:
        async with asyncio.timeout(PATIENCE):
            assert await queue.receive(["default"], 10, STEP) == []
            assert await queue.receive(["default"], 10, 0) == []

    async def test_waiting_receiver_gets_a_new_message(self, broker: Broker, queue: TicketQueue) -> None:
        async with opened(broker.queue()) as second:
            waiting = asyncio.create_task(receive_count(second, 1))
            await queue.push([message(1)])
            assert numbers(await waiting) == [1]

    async def test_messages_of_a_closed_receiver_go_to_another(
        self, broker: Broker, queue: TicketQueue
    ) -> None:
        await queue.push([message(number) for number in range(20)])
        first = broker.queue()
        await first.open()
        received = await receive_until(first, lambda found: len(found) >= 10)
        await first.acknowledge(received[:5])
        acknowledged = set(numbers(received[:5]))
        await first.close()
        rest = await receive_until(queue, lambda found: len(set(numbers(found))) >= 20 - len(acknowledged))
        assert set(numbers(rest)) == set(range(20)) - acknowledged

    async def test_receivers_share_the_messages(self, broker: Broker, queue: TicketQueue) -> None:
        """Each message goes to one of them."""
        received: list[list[int]] = [[], []]

        async def work(own: list[int]) -> None:
            async with opened(broker.queue()) as receiver:
                while not all(received):
                    with suppress(QueueUnavailable):  # a node repeats it
                        some = await receiver.receive(["default"], 1, STEP)
                        await receiver.acknowledge(some)
                        own += numbers(some)

        async def supply() -> None:
            for number in itertools.count():
                if all(received):
                    break
                await queue.push([message(number)])
                await asyncio.sleep(0.01)

        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            for own in received:
                group.create_task(work(own))
            group.create_task(supply())
        if not broker.repeats:
            assert not set(received[0]) & set(received[1])

    async def test_foreign_message_has_no_content_and_can_be_acknowledged(
        self, broker: Broker, queue: TicketQueue
    ) -> None:
        await queue.push([message(1)])
        for body in (b"not json", b'{"v": 99}', b"[]", b"\xff\xfe"):
            await broker.push_foreign("default", body)
        await queue.push([message(2)])
        received = await receive_count(queue, 6)
        assert sorted(numbers(received)) == [1, 2]
        assert sum(delivery.message is None for delivery in received) == 4
        await queue.acknowledge(received)
        await until_depth(queue, "default", 0)

    async def test_many_messages_arrive_once(self, queue: TicketQueue) -> None:
        for start in range(0, self.many, 500):
            await queue.push([message(number) for number in range(start, min(start + 500, self.many))])
        found: list[int] = []
        async with asyncio.timeout(2 * PATIENCE):
            while len(found) < self.many:
                some = await queue.receive(["default"], 100, STEP)
                await queue.acknowledge(some)
                found += numbers(some)
        assert sorted(found) == list(range(self.many))

    async def test_depth_counts_messages_by_priority(self, queue: TicketQueue) -> None:
        await queue.push([message(number, "mail", 5) for number in range(3)])
        await queue.push([message(number, "mail", 9) for number in range(2)])
        await queue.push([message(9, "other", 5)])
        await until_depth(queue, "mail", 5)
        depth = await queue.depth(["mail"])
        assert {name for name, _ in depth} == {"mail"}
        assert depth["mail", 9] == 2
        received = await receive_count(queue, 5, ["mail"])
        await queue.acknowledge(received)
        await until_depth(queue, "mail", 0)

    async def test_depth_of_an_unknown_queue_is_zero(self, queue: TicketQueue) -> None:
        assert sum((await queue.depth(["never used"])).values()) == 0

    async def test_receiver_gets_only_its_queues(self, queue: TicketQueue) -> None:
        await queue.push([message(1, "mail"), message(2, "billing"), message(3, "reports")])
        received = await receive_count(queue, 2, ["mail", "billing"])
        assert sorted(numbers(received)) == [1, 2]
        await queue.acknowledge(received)
        assert numbers(await receive_count(queue, 1, ["reports"])) == [3]

    async def test_unusual_queue_names_stay_apart(self, queue: TicketQueue) -> None:
        names = [*UNUSUAL_NAMES, f"{'x' * 199}y", "mail_2eout", "MAIL.out"]
        await queue.push([message(number, name) for number, name in enumerate(names)])
        for name in names:
            await until_depth(queue, name, 1)
        received = await receive_count(queue, len(names), names)
        found = {each.message.queue: numbers([each]) for each in received if each.message}
        assert found == {name: [number] for number, name in enumerate(names)}

    async def test_pushing_nothing_and_acknowledging_nothing_is_allowed(self, queue: TicketQueue) -> None:
        await queue.push([])
        await queue.acknowledge([])

    async def test_queue_can_be_opened_again(self, queue: TicketQueue) -> None:
        await queue.push([message(1)])
        await queue.close()
        await queue.open()
        assert numbers(await receive_count(queue, 1)) == [1]

    async def test_unreachable_broker_is_reported(self, broker: Broker) -> None:
        lost = broker.unreachable_queue()
        with pytest.raises(QueueUnavailable, match=r"127\.0\.0\.1"):
            async with asyncio.timeout(PATIENCE):
                await lost.open()
        await lost.close()


class RepairConformance(QueueConformance):
    """More for a server that tests can restart, and whose queues they can delete."""

    @pytest.fixture
    async def broker(self) -> RepairableBroker:
        raise NotImplementedError("give the fixture `broker`")

    async def test_waiting_receiver_survives_a_restart(
        self, broker: RepairableBroker, queue: TicketQueue
    ) -> None:
        async with opened(broker.queue()) as receiver:

            async def receive() -> None:
                while not await receiver.receive(["default"], 10, 5 * SECOND):
                    pass

            waiting = asyncio.create_task(until_it_works(receive))
            await broker.restart()
            await until_it_works(lambda: queue.push([message(1)]))
            await waiting

    async def test_deleted_queues_are_declared_again(
        self, broker: RepairableBroker, queue: TicketQueue
    ) -> None:
        async with opened(broker.queue()) as receiver:
            await queue.push([message(1)])
            await receive_count(receiver, 1)
            await broker.delete(["default"])
            found: set[int] = set()

            async def receive() -> None:
                while 2 not in found:
                    # What was pushed while the broker deleted may be lost: the dispatcher pushes it again.
                    await queue.push([message(2)])
                    some = await receiver.receive(["default"], 10, STEP)
                    await receiver.acknowledge(some)
                    found.update(numbers(some))

            await until_it_works(receive)


class ServerConformance(RepairConformance):
    """More for a real server: a stand-in may forget its messages and check no credentials."""

    @pytest.fixture
    async def broker(self) -> RealBroker:
        raise NotImplementedError("give the fixture `broker`")

    async def test_wrong_password_is_reported_without_the_password(self, broker: RealBroker) -> None:
        wrong = broker.queue_with_wrong_password()
        with pytest.raises(QueueUnavailable) as caught:
            async with asyncio.timeout(PATIENCE):
                await wrong.open()
        await wrong.close()
        assert broker.password not in str(caught.value)
        assert "not-it" not in str(caught.value)
        assert "127.0.0.1" in str(caught.value)

    async def test_messages_survive_a_restart_of_the_broker(
        self, broker: RealBroker, queue: TicketQueue
    ) -> None:
        """Connections that were open before work again by themselves."""
        async with opened(broker.queue()) as receiver:
            assert await receiver.receive(["default"], 1, 0) == []
            await queue.push([message(1), message(2)])
            await broker.restart()
            await until_it_works(lambda: queue.push([message(3)]))
            found: set[int] = set()

            async def receive() -> None:
                while not found >= {1, 2, 3}:
                    some = await receiver.receive(["default"], 10, STEP)
                    await receiver.acknowledge(some)
                    found.update(numbers(some))

            await until_it_works(receive)

"""An app with a broker: jobs reach the worker by message; without the broker they come from the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

import pytest

import duetime as dt
from duetime.app.broker import NO_BROKER
from duetime.app.health import Health
from duetime.engine.fetch.sweeper import OVERDUE
from duetime.engine.node.node import Node
from duetime.errors import QueueUnavailable
from duetime.model.events import BrokerBack, BrokerLost, Event, TicketsPushed, TicketsReceived
from duetime.model.instant import SECOND, Micros
from duetime.queue import MAX_TICKETS, Message, Received, Ticket
from duetime.queues.memory import MemoryBroker, MemoryQueue

TIMEOUT = 120  # seconds


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def app(broker: MemoryBroker, events: list[Event]) -> dt.App:
    made = dt.App("memory://", queue=lambda: MemoryQueue(broker), observers=[events.append])

    @made.task("echo")
    async def echo(value: int = 0) -> int:
        return value

    @made.task("alone", limit=dt.Limit(1))
    async def alone(value: int = 0) -> int:
        await asyncio.sleep(0.001)
        return value

    return made


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not holds():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def connected(app: dt.App, **options: object) -> AsyncIterator[Node]:
    async with app.running(**options) as node:
        await until(lambda: node.broker_up is True)
        yield node


def counted(events: list[Event], kind: type[TicketsPushed | TicketsReceived]) -> int:
    return sum(event.tickets for event in events if isinstance(event, kind))


async def test_jobs_come_through_the_broker(app: dt.App, events: list[Event]) -> None:
    async with connected(app):
        jobs = await app.submit_many([dt.NewJob("echo", payload={"value": n}) for n in range(300)])
        assert [(await job.wait(timeout="60s")).result for job in jobs] == list(range(300))
    assert counted(events, TicketsReceived) >= 300


async def test_jobs_with_a_limit_come_through_the_broker(app: dt.App) -> None:
    async with connected(app):
        jobs = await app.submit_many([dt.NewJob("alone", payload={"value": n}) for n in range(30)])
        assert [(await job.wait(timeout="60s")).result for job in jobs] == list(range(30))


@pytest.mark.slow
async def test_jobs_of_a_queue_with_limits_are_claimed_from_the_store(app: dt.App) -> None:
    async with connected(app):
        await app.limit_queue("slow", max_running=1)
        jobs = await app.submit_many([dt.NewJob("echo", queue="slow") for _ in range(20)])
        for job in jobs:
            await job.wait(timeout="60s")


@pytest.mark.slow
async def test_without_the_broker_jobs_are_claimed_from_the_store(
    app: dt.App, broker: MemoryBroker, events: list[Event]
) -> None:
    health = Health(app)
    async with connected(app) as node:
        assert await health.remark() is None
        broker.go_down()
        await until(lambda: node.broker_up is False)
        assert await health.remark() == NO_BROKER
        assert await health.trouble() is None
        received = counted(events, TicketsReceived)
        assert (await (await app.submit("echo", value=7)).wait(timeout="60s")).result == 7
        assert counted(events, TicketsReceived) == received
        broker.come_back()
        await until(lambda: node.broker_up is True)
        assert (await (await app.submit("echo", value=8)).wait(timeout="60s")).result == 8
        await until(lambda: counted(events, TicketsReceived) > received)
    told = [event for event in events if isinstance(event, BrokerLost | BrokerBack)]
    assert [type(event) for event in told if event.part == "worker"] == [BrokerLost, BrokerBack]


async def test_node_starts_while_the_broker_is_down(app: dt.App, broker: MemoryBroker) -> None:
    broker.go_down()
    async with app.running():
        assert (await (await app.submit("echo", value=1)).wait(timeout="60s")).result == 1


@pytest.mark.slow
async def test_lost_messages_cost_time_only(app: dt.App, broker: MemoryBroker) -> None:
    async with connected(app):
        broker.faults = lambda _: ()
        job = await app.submit("echo", value=3)
        assert (await job.wait(timeout="60s")).result == 3
        assert job.started_at is not None
        assert job.started_at - job.due_at < timedelta(microseconds=10 * OVERDUE)


async def test_doubled_and_foreign_messages_start_nothing_twice(app: dt.App, broker: MemoryBroker) -> None:
    broker.faults = lambda _: (0, 0, SECOND // 50)
    async with connected(app):
        jobs = await app.submit_many([dt.NewJob("echo") for _ in range(50)])
        broker.put(Message("default", 9, tuple(Ticket(job.id, 5) for job in jobs)))
        for job in jobs:
            await job.wait(timeout="60s")
        assert {job.attempt for job in jobs} == {1}


async def test_message_is_acknowledged_after_the_claim_while_the_next_is_received(
    broker: MemoryBroker, app: dt.App
) -> None:
    calls: list[str] = []
    confirmed = asyncio.Event()

    class SlowQueue(MemoryQueue):
        async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
            calls.append("receive")
            return await super().receive(queues, limit, timeout)

        async def acknowledge(self, deliveries: Sequence[Received]) -> None:
            if deliveries:
                [message] = [delivery.message for delivery in deliveries]
                assert message is not None
                job = await app.get_job(message.tickets[0].id)
                calls.append(f"acknowledge {job.attempt}")
                await confirmed.wait()
            await super().acknowledge(deliveries)

    app.use_queue(lambda: SlowQueue(broker))
    async with connected(app):
        await (await app.submit("echo", value=1)).wait(timeout="60s")
        await until(lambda: "acknowledge 1" in calls)
        await until(lambda: "receive" in calls[calls.index("acknowledge 1") :])
        confirmed.set()
        await until(lambda: not any(broker.depth("default").values()))


@pytest.mark.slow
async def test_received_messages_survive_a_failed_acknowledgement_of_others(
    broker: MemoryBroker, app: dt.App
) -> None:
    """A broker may deliver what was received and not acknowledged again only much later."""
    next_received = asyncio.Event()
    failures: list[Exception] = []

    class OneFailure(MemoryQueue):
        async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
            received = await super().receive(queues, limit, timeout)
            if received and next_is_due.is_set():
                next_received.set()
            return received

        async def acknowledge(self, deliveries: Sequence[Received]) -> None:
            await super().acknowledge(deliveries)
            if not failures:
                failures.append(QueueUnavailable("the acknowledgement was lost"))
                await next_received.wait()
                raise failures[0]

        async def close(self) -> None:
            """It delivers nothing again."""

    app.use_queue(lambda: OneFailure(broker))
    next_is_due = asyncio.Event()
    async with connected(app, roles=["worker"]):
        for number in range(2):
            job = await app.submit("echo", value=number, delay="1h")
            broker.put(Message("default", 5, (Ticket(job.id, 0),)))
            await until(lambda: bool(failures))
            next_is_due.set()
        await until(lambda: not any(broker.depth("default").values()))


@pytest.mark.slow
async def test_worker_gives_back_tickets_it_has_no_room_for(
    app: dt.App, broker: MemoryBroker, events: list[Event]
) -> None:
    started: list[int] = []
    go_on = asyncio.Event()

    @app.task("hold")
    async def hold(value: int) -> None:
        started.append(value)
        await go_on.wait()

    async with connected(app, concurrency=2, roles=["worker"]):
        jobs = await app.submit_many([dt.NewJob("hold", payload={"value": n}) for n in range(MAX_TICKETS)])
        broker.put(Message("default", 5, tuple(Ticket(job.id, 0) for job in jobs)))
        await until(lambda: len(started) == 2)
        await until(lambda: sum(broker.depth("default").values()) == 1)
        [delivery] = await MemoryQueue(broker).receive(["default"], 1, 0)
        assert delivery.message is not None
        assert len(delivery.message.tickets) == MAX_TICKETS - 2
        go_on.set()
        for job in jobs:
            await job.wait(timeout="60s")


async def test_tickets_of_finished_jobs_do_not_delay_others(
    app: dt.App, broker: MemoryBroker, events: list[Event]
) -> None:
    """They need no room: a worker with one slot handles a message full of them with one claim."""
    async with connected(app, concurrency=1, roles=["worker"]):
        [job] = await app.submit_many([dt.NewJob("echo", payload={"value": 5})])
        stale = [Ticket(UUID(int=number), 0) for number in range(1, MAX_TICKETS)]
        broker.put(Message("default", 5, (*stale, Ticket(job.id, 0))))
        assert (await job.wait(timeout="60s")).result == 5
        await until(lambda: sum(broker.depth("default").values()) == 0)
    received = [event for event in events if isinstance(event, TicketsReceived)]
    assert len(received) == 1, "nothing was given back to the broker"


async def test_messages_of_a_worker_that_stops_go_to_another(app: dt.App, broker: MemoryBroker) -> None:
    queue = MemoryQueue(broker)
    broker.put(Message("default", 5, (Ticket(UUID(int=1), 0),)))
    assert len(await queue.receive(["default"], 1, 0)) == 1
    assert await MemoryQueue(broker).receive(["default"], 1, 0) == []
    await queue.close()
    assert len(await MemoryQueue(broker).receive(["default"], 1, 0)) == 1


def test_unknown_broker_is_refused() -> None:
    with pytest.raises(dt.ConfigError, match=r"queue: 'carrier' is not a broker: use one of redis://"):
        dt.App("memory://", queue="carrier://pigeon")


async def test_dispatcher_without_a_broker_is_refused() -> None:
    app = dt.App("memory://")
    with pytest.raises(dt.ConfigError, match="roles: a dispatcher needs a broker"):
        async with app.running(roles=["dispatcher"]):
            pass

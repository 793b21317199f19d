"""The dispatcher gives each due job one ticket, the most urgent first, and no more than the broker may hold."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from duetime.engine.dispatch.dispatcher import (
    AHEAD,
    BUSY_INTERVAL,
    LEAD,
    LOOK_INTERVAL,
    REPEAT_AFTER,
    Dispatcher,
)
from duetime.engine.fetch.broker import RETRY_INTERVAL, BrokerLink
from duetime.engine.node.timer import NodeClock
from duetime.model.events import BrokerBack, BrokerDepth, BrokerLost, Event
from duetime.model.hint import JobHint
from duetime.model.ids import SEGMENTS, segment_of
from duetime.model.instant import SECOND, Micros
from duetime.model.job import JobDraft
from duetime.model.lease import NodeId
from duetime.model.limit import Queue
from duetime.observer import Observers
from duetime.queue import MAX_TICKETS, Message, Ticket
from duetime.queues.memory import MemoryBroker, MemoryQueue
from duetime.store import ClaimRequest, Due
from duetime.stores.memory import MemoryStore
from duetime.testing.conformance.drafts import (
    HOUR,
    MINUTE,
    PRIORITY,
    QUEUE,
    TENANT,
    claim,
    job,
    jobs,
    joined,
    request,
    retry,
    settle,
)


class DispatchBench:
    """A dispatcher on a store in memory; the test turns the clock."""

    def __init__(self, max_depth: int = 5_000, segments: Sequence[int] = range(SEGMENTS)) -> None:
        self.now: Micros = 1_000_000 * SECOND
        self.store = MemoryStore(lambda: self.now)
        self.broker = MemoryBroker()
        self.queue = MemoryQueue(self.broker)
        self.events: list[Event] = []
        observers = Observers([self.events.append])
        clock = NodeClock(monotonic=lambda: self.now)
        link = BrokerLink(MemoryQueue(self.broker), "dispatcher", observers)
        self.dispatcher = Dispatcher(self.store, clock, NODE, link, lambda: segments, max_depth, observers)

    async def turn(self, passed: Micros = 0) -> list[Message]:
        """The messages of the next turn; a worker takes them from the broker."""
        self.now += passed
        self.wait = await self.dispatcher.run_once()
        return await self.take()

    async def take(self) -> list[Message]:
        deliveries = await self.queue.receive([QUEUE, "default", "mail"], 10_000, 0)
        await self.queue.acknowledge(deliveries)
        return [delivery.message for delivery in deliveries if delivery.message is not None]

    async def add(self, *drafts: JobDraft) -> None:
        await self.store.add_jobs(drafts)
        for draft in drafts:
            self.dispatcher.hinted(JobHint(draft.queue, draft.priority, draft.due_at, draft.tenant))


NODE = NodeId(1)


def tickets_of(messages: Sequence[Message]) -> list[Ticket]:
    return [ticket for message in messages for ticket in message.tickets]


def first_tickets(drafts: Sequence[JobDraft]) -> list[Ticket]:
    return [Ticket(draft.id, 0) for draft in drafts]


async def test_one_due_job_is_one_message_at_the_next_turn() -> None:
    bench = DispatchBench()
    assert await bench.turn() == []
    draft = job(bench.now)
    await bench.add(draft)
    assert await bench.turn() == [Message(QUEUE, PRIORITY, (Ticket(draft.id, 0),))]
    assert await bench.turn() == []


async def test_many_due_jobs_share_messages() -> None:
    bench = DispatchBench()
    drafts = jobs(1_000, bench.now - HOUR)
    await bench.store.add_jobs(drafts)
    messages = await bench.turn()
    assert {len(message.tickets) for message in messages} == {MAX_TICKETS}
    assert tickets_of(messages) == first_tickets(drafts)


async def test_a_few_due_jobs_are_shared_by_workers() -> None:
    bench = DispatchBench()
    await bench.store.add_jobs(jobs(16, bench.now - HOUR))
    assert [len(message.tickets) for message in await bench.turn()] == [2] * 8


async def test_urgent_jobs_are_pushed_first() -> None:
    bench = DispatchBench()
    pushed: list[int] = []
    bench.broker.faults = lambda message: pushed.append(message.priority) or (0,)  # type: ignore[func-returns-value]
    drafts = [job(bench.now - HOUR + priority, priority=priority) for priority in (1, 9, 5)]
    await bench.store.add_jobs(drafts)
    await bench.turn()
    assert pushed == [9, 5, 1]


async def test_tenants_take_turns() -> None:
    bench = DispatchBench()
    flood = jobs(20, bench.now - HOUR, tenant="flood")
    other = jobs(2, bench.now, tenant="other")
    await bench.store.add_jobs([*flood, *other])
    named = tickets_of(await bench.turn())
    assert {ticket.id for ticket in named[:4]} >= {draft.id for draft in other}


async def test_future_job_is_pushed_shortly_before_its_time() -> None:
    bench = DispatchBench()
    await bench.turn()
    draft = job(bench.now + MINUTE)
    await bench.add(draft)
    assert await bench.turn() == []
    assert bench.wait <= LOOK_INTERVAL
    assert await bench.turn(MINUTE - AHEAD - 1) == []
    assert bench.wait == AHEAD + 1 - LEAD
    assert tickets_of(await bench.turn(bench.wait)) == [Ticket(draft.id, 0)]


async def test_ticket_is_given_again_only_when_its_message_is_lost() -> None:
    bench = DispatchBench()
    draft = job(bench.now)
    await bench.store.add_jobs([draft])
    await bench.dispatcher.run_once()  # the message stays in the broker
    for _ in range(3):
        bench.now += 2 * REPEAT_AFTER
        await bench.dispatcher.run_once()
    assert tickets_of(await bench.take()) == [Ticket(draft.id, 0)]
    assert tickets_of(await bench.turn(2 * REPEAT_AFTER)) == [Ticket(draft.id, 0)]


async def test_flushed_broker_gets_the_tickets_again() -> None:
    bench = DispatchBench()
    drafts = jobs(100, bench.now - HOUR)
    await bench.store.add_jobs(drafts)
    await bench.dispatcher.run_once()
    bench.broker.flush()
    assert set(tickets_of(await bench.turn(2 * REPEAT_AFTER))) == set(first_tickets(drafts))


async def test_claimed_jobs_are_forgotten_and_a_retry_has_a_ticket_of_its_own() -> None:
    bench = DispatchBench()
    node = await joined(bench.store)
    await bench.store.add_jobs([draft := job(bench.now)])
    assert tickets_of(await bench.turn()) == [Ticket(draft.id, 0)]
    [claimed] = await claim(bench.store, request(node))
    assert await bench.turn(2 * REPEAT_AFTER) == []
    assert bench.dispatcher._given == {}
    await settle(bench.store, [retry(claimed, bench.now, bench.now)])
    assert tickets_of(await bench.turn(LOOK_INTERVAL)) == [Ticket(draft.id, 1)]


async def test_dispatcher_stops_at_the_depth() -> None:
    bench = DispatchBench(max_depth=100)
    node = await joined(bench.store)
    drafts = jobs(500, bench.now - HOUR)
    await bench.store.add_jobs(drafts)
    for _ in range(5):
        bench.now += LOOK_INTERVAL
        await bench.dispatcher.run_once()
    assert sum(len(given) for given in bench.dispatcher._given.values()) == 100
    claimed = await claim(bench.store, request(node, room=60))
    bench.now += LOOK_INTERVAL
    await bench.dispatcher.run_once()
    assert len(tickets_of(await bench.take())) == 100 + len(claimed)


async def test_full_lane_is_looked_at_when_most_of_its_tickets_are_used() -> None:
    bench = DispatchBench(max_depth=100)
    node = await joined(bench.store)
    await bench.store.add_jobs(jobs(500, bench.now - HOUR))
    await bench.turn()
    assert bench.wait == BUSY_INTERVAL
    for used, expected in ((0, 2), (10, 4), (80, 3), (80, 2.25)):
        await claim(bench.store, request(node, room=used))
        bench.now += bench.wait
        await bench.dispatcher.run_once()
        bench.wait = bench.dispatcher._wake_at - bench.now
        assert bench.wait == expected * BUSY_INTERVAL


async def test_full_look_lists_no_more_than_the_broker_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = DispatchBench(max_depth=100)
    await bench.store.add_jobs(jobs(500, bench.now - HOUR))
    rooms = []
    due_jobs = bench.store.due_jobs

    async def recorded(wanted: ClaimRequest) -> Due:
        rooms.append(wanted.room)
        return await due_jobs(wanted)

    monkeypatch.setattr(bench.store, "due_jobs", recorded)
    for _ in range(3):
        await bench.turn(LOOK_INTERVAL)
    assert rooms == [101, 101, 101]


async def test_full_lane_does_not_hold_up_urgent_jobs() -> None:
    bench = DispatchBench(max_depth=100)
    await bench.store.add_jobs(jobs(500, bench.now - HOUR, priority=0))
    await bench.turn()
    urgent = job(bench.now, priority=9)
    await bench.add(urgent)
    assert tickets_of(await bench.turn()) == [Ticket(urgent.id, 0)]


async def test_many_jobs_due_at_the_same_instant_all_get_tickets() -> None:
    bench = DispatchBench()
    drafts = [job(bench.now) for _ in range(3_500)]
    await bench.store.add_jobs(drafts)
    found: list[Ticket] = []
    for _ in range(4):
        found += tickets_of(await bench.turn())
    assert sorted(found) == sorted(first_tickets(drafts))


async def test_dispatcher_pushes_only_jobs_of_its_segments() -> None:
    mine = range(0, SEGMENTS, 2)
    bench = DispatchBench(segments=mine)
    drafts = jobs(200, bench.now - HOUR)
    await bench.store.add_jobs(drafts)
    expected = [draft for draft in drafts if segment_of(draft.id) in mine]
    assert tickets_of(await bench.turn()) == first_tickets(expected)


async def test_jobs_of_queues_with_limits_are_left_to_claims_from_the_store() -> None:
    bench = DispatchBench()
    await bench.store.set_queue(Queue(QUEUE, max_running=1))
    await bench.store.add_jobs([job(bench.now), other := job(bench.now, queue="mail")])
    assert tickets_of(await bench.turn()) == [Ticket(other.id, 0)]


async def test_outage_is_told_once_and_everything_due_is_pushed_after_it() -> None:
    bench = DispatchBench()
    await bench.turn()
    drafts = jobs(3, bench.now - HOUR)
    await bench.store.add_jobs(drafts)
    bench.broker.go_down()
    for _ in range(3):
        bench.now += LOOK_INTERVAL
        assert await bench.dispatcher.run_once() == RETRY_INTERVAL
    bench.broker.come_back()
    assert tickets_of(await bench.turn(RETRY_INTERVAL)) == first_tickets(drafts)
    told = [type(event) for event in bench.events if isinstance(event, BrokerLost | BrokerBack)]
    assert told == [BrokerLost, BrokerBack]


async def test_depth_is_reported() -> None:
    bench = DispatchBench()
    await bench.store.add_jobs([job(bench.now, priority=9, tenant=TENANT)])
    await bench.dispatcher.run_once()
    bench.now += LOOK_INTERVAL
    await bench.dispatcher.run_once()
    [*_, last] = [event for event in bench.events if isinstance(event, BrokerDepth)]
    assert last.messages[QUEUE, 9] == 1

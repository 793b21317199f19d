"""The consumer: while there is a broker, it brings due jobs to the worker. Messages name them; the store has
them, and a job starts only after it was claimed there."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence

from duetime.clock import Clock
from duetime.engine.fetch.broker import RETRY_INTERVAL, BrokerLink
from duetime.engine.fetch.claimer import AFTER_SWEEP, BATCH, LOOK_INTERVAL, Fetch
from duetime.engine.fetch.cursors import ALL_JOBS, ClaimCursors
from duetime.errors import QueueUnavailable
from duetime.model.events import MessagesDropped, TicketsReceived
from duetime.model.instant import SECOND, Micros
from duetime.observer import Observers
from duetime.queue import MAX_TICKETS, Message, Received, Ticket

RECEIVE_TIMEOUT = SECOND
SILENCE = SECOND  # without a message, while jobs are overdue: no dispatcher seems to work


class Consumer:
    """Receives messages, claims the jobs that they name, and acknowledges the messages after that."""

    name = "consumer"

    def __init__(
        self, fetch: Fetch, clock: Clock, link: BrokerLink, cursors: ClaimCursors, observers: Observers
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._link = link
        self._cursors = cursors
        self._observers = observers
        self._deliveries: list[Received] = []  # received; their jobs are not claimed yet
        self._tickets_per_message = 1
        self._receiving: asyncio.Future[list[Received]] | None = None
        self._acknowledging: asyncio.Future[None] | None = None  # while the next messages are received
        self._stopping = False
        self._received_at: Micros = clock.monotonic()
        self._silent = False
        self._dropped = 0  # messages, not reported yet
        self._report_at: Micros = 0
        self.hungry = False  # out of room: wake me when a job was settled

    @property
    def delivers(self) -> bool:
        """The broker brings the jobs: nothing else needs to claim them."""
        return self._link.up and not self._silent

    def found_overdue(self) -> None:
        """The sweep has claimed overdue jobs. If no message comes meanwhile, claim from the store until one
        does."""
        if self._clock.monotonic() - self._received_at > SILENCE:
            self._silent = True

    def stop(self) -> None:
        """Do not wait for messages any longer."""
        self._stopping = True
        if self._receiving is not None:
            self._receiving.cancel()

    async def run_once(self) -> Micros:
        self._report_dropped()
        try:
            return await self._turn()
        except QueueUnavailable:
            # What was received stays: the acknowledgement of earlier messages may be what failed. The broker
            # would deliver it again only after a while, and the dispatcher waits for that.
            return RETRY_INTERVAL

    async def _turn(self) -> Micros:
        await self._link.connect()
        capacity = self._fetch.capacity
        self._fetch.worker.arm()
        room = self._fetch.backpressure.allow(min(BATCH, capacity.room))
        self.hungry = room <= 0
        if room <= 0 or not capacity.trusted():
            return LOOK_INTERVAL
        queues = [queue for queue in self._cursors.queues if queue not in self._cursors.limited]
        if not queues:
            return LOOK_INTERVAL
        if not self._deliveries:
            self._deliveries = await self._receive(queues, max(1, room // self._tickets_per_message))
        acknowledging, self._acknowledging = self._acknowledging, None
        if acknowledging is not None:
            await acknowledging
        if capacity.recalling:
            return AFTER_SWEEP
        room = min(room, capacity.room)  # the sweeper may have taken some meanwhile
        if self._deliveries and room > 0:
            await self._claim(room)
        return 0

    async def _receive(self, queues: Sequence[str], limit: int) -> list[Received]:
        if self._stopping:
            return []
        self._receiving = asyncio.ensure_future(self._link.receive(queues, limit, RECEIVE_TIMEOUT))
        try:
            return await self._receiving
        except asyncio.CancelledError:
            if self._stopping:
                return []
            raise
        finally:
            self._receiving = None

    async def _claim(self, room: int) -> None:
        """What there is no room for goes back to the broker, for other workers. Tickets that claim nothing
        need no room: many of them must not delay the others. The store claims in the order of the tickets, so
        only those behind the last claimed one are left."""
        messages = [delivery.message for delivery in self._deliveries if delivery.message is not None]
        messages.sort(key=lambda message: -message.priority)
        named = [(message, ticket) for message in messages for ticket in message.tickets]
        tickets = tuple(dict.fromkeys(ticket for _, ticket in named))
        left: list[tuple[Message, Ticket]] = []
        if tickets:
            self._received_at, self._silent = self._clock.monotonic(), False
            self._tickets_per_message = -(-len(named) // len(messages))
            claims = await self._fetch.claim(self._fetch.named(tickets, room))
            if len(claims.jobs) >= room:
                claimed = {job.id for job in claims.jobs}
                last = max(at for at, (_, ticket) in enumerate(named) if ticket.id in claimed)
                left = named[last + 1 :]
            used = len(set(tickets).difference(ticket for _, ticket in left))
            self._observers(TicketsReceived(used, used - len(claims.jobs)))
            if claims.more:
                await self._fetch.store.hint([ALL_JOBS])  # a dispatcher looks for them
        deliveries, self._deliveries = self._deliveries, []
        if left:
            await self._link.push(messages_of(left))
        self._acknowledging = asyncio.ensure_future(self._link.acknowledge(deliveries))
        self._acknowledging.add_done_callback(_look_at_result)
        self._dropped += len(deliveries) - len(messages)

    def _report_dropped(self) -> None:
        """At most once in an interval, however many another program sends."""
        now = self._clock.monotonic()
        if self._dropped and now >= self._report_at:
            self._observers(MessagesDropped(self._dropped))
            self._dropped, self._report_at = 0, now + LOOK_INTERVAL


def _look_at_result(acknowledging: asyncio.Future[None]) -> None:
    """The next turn raises it, if there is one."""
    if not acknowledging.cancelled():
        acknowledging.exception()


def messages_of(named: Iterable[tuple[Message, Ticket]]) -> list[Message]:
    """The tickets in messages like those they came in."""
    places: defaultdict[tuple[str, int], list[Ticket]] = defaultdict(list)
    for message, ticket in named:
        places[message.queue, message.priority].append(ticket)
    return [
        message
        for (queue, priority), tickets in places.items()
        for message in packed(queue, priority, tickets)
    ]


def packed(queue: str, priority: int, tickets: Sequence[Ticket], size: int = MAX_TICKETS) -> list[Message]:
    return [Message(queue, priority, tuple(tickets[at : at + size])) for at in range(0, len(tickets), size)]

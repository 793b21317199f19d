"""The dispatcher: gives the broker a ticket for each due job. It sleeps until the next due time or a hint.

The store does not know about tickets: what was given is remembered here, as long as the job is pending. Now
and then the dispatcher looks at everything that is due. Jobs that are gone are forgotten; a job that is still
pending although the broker has no message for it gets another ticket. A second ticket of the same attempt
does no harm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.fetch.broker import RETRY_INTERVAL, BrokerLink
from duetime.engine.fetch.consumer import packed
from duetime.engine.fetch.cursors import ANY_QUEUE, ClaimCursors, LaneName, name_of
from duetime.errors import QueueUnavailable
from duetime.model.events import BrokerDepth, TicketsPushed
from duetime.model.hint import JobHint
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.job import DEFAULT_QUEUE
from duetime.model.lease import NodeId
from duetime.observer import Observers
from duetime.queue import MAX_TICKETS, Message
from duetime.store import ClaimRequest, Due, DueJob, Lane, Store

BATCH = 2_500  # new tickets of one lane in one turn
AHEAD = SECOND // 10  # tickets are given so long before the due time; a worker claims twice as far ahead
LEAD = SECOND // 20
LOOK_INTERVAL = SECOND  # hints may be lost
# While more is due than the broker may hold: how long to wait at least, and which part of the tickets workers
# should have used until then
BUSY_INTERVAL = SECOND // 20
USED_PART = 0.6
MIN_MESSAGES = 8  # for the jobs that are due together: several workers share them
# A ticket is given again after this time if the broker has no message of its queue and priority
REPEAT_AFTER = SECOND
# A job that needs a permit may have had to wait for it, and be claimable again: its ticket is used up
REPEAT_PERMIT_AFTER = SECOND // 5
MAX_REPEATED_DEPTH = 100  # messages in the broker: with more, no ticket of such a job is given again


class GivenTicket(NamedTuple):
    attempt: int
    due_at: Micros
    given_at: Micros


class Dispatcher:
    name = "dispatcher"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: NodeId,
        link: BrokerLink,
        segments: Callable[[], Sequence[int]],
        max_depth: int,
        observers: Observers,
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._link = link
        self._segments = segments
        self._max_depth = max_depth
        self._observers = observers
        self._cursors = ClaimCursors((DEFAULT_QUEUE,))
        self._given: dict[LaneName, dict[UUID, GivenTicket]] = {}
        self._depth: Mapping[tuple[str, int], int] = {}
        self._look_at: Micros = 0  # when to look at everything, by the monotonic clock
        self._filled_at: Micros | None = None  # when more was due than the broker may hold; None: not now
        self._wake_at: Micros = 0

    def hinted(self, hint: JobHint) -> bool:
        """Whether to look now rather than at the time planned."""
        self._cursors.hinted(hint)
        if hint.queue == ANY_QUEUE:
            self._look_at = 0
            return True
        return hint.due_at - AHEAD < self._wake_at

    async def run_once(self) -> Micros:
        segments = tuple(self._segments())
        try:
            await self._link.connect()
            if not segments:
                self._given.clear()  # another dispatcher has them now
                return LOOK_INTERVAL
            everything = self._clock.monotonic() >= self._look_at
            return await (self._look_at_all(segments) if everything else self._look_at_news(segments))
        except QueueUnavailable:
            self._given.clear()  # the broker may have lost some
            self._look_at = 0
            return RETRY_INTERVAL

    async def _look_at_all(self, segments: tuple[int, ...]) -> Micros:
        self._look_at = self._clock.monotonic() + LOOK_INTERVAL
        await self._cursors.look_around(self._store)
        self._cursors.take_news()
        self._depth = await self._link.depth(self._cursors.queues)
        self._observers(BrokerDepth(self._depth))
        room = BATCH + max(map(len, self._given.values()), default=0)
        due = await self._list(self._cursors.from_start(), segments, min(room, self._share + 1))
        now = self._clock.monotonic()
        by_lane = _by_lane(due.jobs)
        lost = self._forget(by_lane, now)
        used, full = await self._give(by_lane, lost)
        filled_at, self._filled_at = self._filled_at, now if full else None
        if not full and any(len(jobs) >= room for jobs in by_lane.values()):
            self._look_at = now  # there are more
        elif full:
            self._look_at = now + (BUSY_INTERVAL if filled_at is None else _until_used(used, now - filled_at))
        elif any(job.needs_permit for job in due.jobs):
            self._look_at = now + REPEAT_PERMIT_AFTER
        return self._until(due.next_at)

    async def _look_at_news(self, segments: tuple[int, ...]) -> Micros:
        """Lanes that a hint has named, from the due time it told; or the next job falls due."""
        lanes = self._cursors.from_cursors(self._cursors.take_news() or None)
        due = await self._list(lanes, segments, BATCH)
        by_lane = _by_lane(due.jobs)
        _, full = await self._give(by_lane, 0)
        if full:
            self._look_at = min(self._look_at, self._clock.monotonic() + BUSY_INTERVAL)
        elif any(len(jobs) >= BATCH for jobs in by_lane.values()):
            self._look_at = 0  # others may be behind those that have tickets
        return self._until(due.next_at)

    async def _list(self, lanes: Sequence[Lane], segments: tuple[int, ...], room: int) -> Due:
        """Jobs of queues with limits are claimed from the store: only there is known when one may start."""
        wanted = tuple(lane for lane in lanes if lane.queue not in self._cursors.limited)
        due = await self._store.due_jobs(ClaimRequest(self._node, wanted, (), room, AHEAD, segments=segments))
        now = self._clock.now()
        self._cursors.exhausted(now, wanted)
        self._cursors.claimed((job for job in due.jobs if not job.needs_permit), now)
        return due

    def _forget(self, by_lane: Mapping[LaneName, list[DueJob]], now: Micros) -> int:
        """Keep the tickets whose job is as it was when they were given, except those that are lost. Returns
        how many are lost."""
        given, self._given, lost = self._given, {}, 0
        for lane in given.keys() & by_lane.keys():
            jobs, depth = by_lane[lane], self._depth_of(by_lane[lane][0])
            pending = [(job, given[lane][job.id]) for job in jobs if _has_ticket(job, given[lane])]
            kept = {job.id: ticket for job, ticket in pending if not _is_lost(job, ticket, depth, now)}
            lost += len(pending) - len(kept)
            if kept:
                self._given[lane] = kept
        return lost

    def _depth_of(self, job: DueJob) -> int:
        """Brokers without priorities of their own count groups, under the highest priority of each."""
        groups = [
            priority for queue, priority in self._depth if queue == job.queue and priority >= job.priority
        ]
        return self._depth[job.queue, min(groups)] if groups else 0

    async def _give(self, by_lane: Mapping[LaneName, list[DueJob]], repeated: int) -> tuple[float, bool]:
        """Tickets for those that have none. Returns for how much of a lane, and whether some have to wait
        because the broker has enough of their lane."""
        now, full, part = self._clock.monotonic(), False, 0.0
        chosen: dict[LaneName, list[DueJob]] = {}
        for lane, jobs in by_lane.items():
            given = self._given.get(lane, {})
            room = self._room_for(jobs[0]) - len(given)
            fresh = [job for job in jobs if not _has_ticket(job, given)]
            full = full or len(fresh) > room
            if fresh and room > 0:
                chosen[lane] = fresh[:room]
                part = max(part, len(chosen[lane]) / self._share)
        if chosen:
            await self._link.push(_messages(chosen))
            for lane, jobs in chosen.items():
                tickets = {job.id: GivenTicket(job.attempt, job.due_at, now) for job in jobs}
                self._given.setdefault(lane, {}).update(tickets)
            self._observers(TicketsPushed(sum(map(len, chosen.values())), repeated))
        return part, full

    def _room_for(self, job: DueJob) -> int:
        """How many jobs like this may have tickets; dispatchers share the depth of the broker as they share
        the segments."""
        if self._depth_of(job) >= self._max_depth:
            return 0  # by messages: no worker receives them, or there are many old ones
        return self._share

    @property
    def _share(self) -> int:
        return max(1, self._max_depth * len(self._segments()) // SEGMENTS)

    def _until(self, next_at: Micros | None) -> Micros:
        now = self._clock.now()
        wake_at = now + max(0, self._look_at - self._clock.monotonic())
        if next_at is not None:
            wake_at = min(wake_at, max(now, next_at - LEAD))
        self._wake_at = wake_at
        return wake_at - now


def _until_used(used: float, lapse: Micros) -> Micros:
    """When workers will have used `USED_PART` of the tickets: in the last `lapse` they have used `used`."""
    wait = int(lapse * USED_PART / max(used, USED_PART / 2))
    return min(max(BUSY_INTERVAL, wait), LOOK_INTERVAL)


def _has_ticket(job: DueJob, given: Mapping[UUID, GivenTicket]) -> bool:
    ticket = given.get(job.id)
    return ticket is not None and ticket.attempt == job.attempt and ticket.due_at == job.due_at


def _is_lost(job: DueJob, ticket: GivenTicket, depth: int, now: Micros) -> bool:
    """`depth`: of the job's lane."""
    age = now - ticket.given_at
    if job.needs_permit and age >= REPEAT_PERMIT_AFTER:
        return depth < MAX_REPEATED_DEPTH
    return age >= REPEAT_AFTER and depth == 0


def _by_lane(jobs: Iterable[DueJob]) -> dict[LaneName, list[DueJob]]:
    """Most urgent first, as the jobs are."""
    return {lane: list(some) for lane, some in groupby(jobs, name_of)}


def _messages(chosen: Mapping[LaneName, list[DueJob]]) -> list[Message]:
    """Most urgent first."""
    places: defaultdict[tuple[str, int], list[list[DueJob]]] = defaultdict(list)
    for (queue, priority, _), jobs in chosen.items():
        places[queue, priority].append(jobs)
    messages: list[Message] = []
    for (queue, priority), tenants in sorted(places.items(), key=lambda place: -place[0][1]):
        tickets = [job.ticket for job in _in_turns(tenants)]
        messages += packed(queue, priority, tickets, min(MAX_TICKETS, max(1, len(tickets) // MIN_MESSAGES)))
    return messages


def _in_turns(tenants: list[list[DueJob]]) -> list[DueJob]:
    """One job of each tenant in turn."""
    if len(tenants) == 1:
        return tenants[0]
    longest = max(map(len, tenants))
    return [jobs[at] for at in range(longest) for jobs in tenants if at < len(jobs)]

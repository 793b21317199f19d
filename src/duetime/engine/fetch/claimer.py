"""The claimer: brings due jobs to the worker. It sleeps until the next due time or a hint and never polls in
a busy loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from duetime.clock import Clock, pause
from duetime.engine.fetch.cursors import ALL_JOBS, ANY_QUEUE, ClaimCursors, Lanes, name_of
from duetime.engine.node.loop import IMMEDIATELY
from duetime.engine.run.worker import Worker, needs_permit
from duetime.model.fairness import fair_turn
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.queue import Ticket
from duetime.store import ClaimRequest, Claims, Lane, OfNode, Store

# Back-pressure: a node whose machine or event loop is busy claims less than its slots would take.


MAX_LAG = SECOND // 4  # an event loop that answers later than this is busy


class Backpressure:
    def __init__(self, lag: Callable[[], Micros], load: Callable[[], float], max_load: float | None) -> None:
        self._lag = lag
        self._load = load
        self._max_load = max_load

    def allow(self, room: int) -> int:
        """How much of this room to use now. A busy event loop still gets some, or one slow task would stop
        all others."""
        if room <= 0 or (self._max_load is not None and self._load() > self._max_load):
            return 0
        lag = self._lag()
        return room if lag <= MAX_LAG else max(1, room * MAX_LAG // lag)


# One claim on behalf of the worker: what claimer and sweeper share.


class Fetch:
    def __init__(
        self,
        store: Store,
        worker: Worker,
        backpressure: Backpressure,
        node: NodeId,
        targets: tuple[str, ...],
        for_threads: bool = True,
    ) -> None:
        """`for_threads`: some of the targets may take a thread. Without it, this claims only while all
        threads are taken: as long as there is a free one, jobs of all targets are claimed in their order."""
        self.store = store
        self.for_threads = for_threads
        self.worker = worker
        self.capacity = worker.capacity
        self.backpressure = backpressure
        self.node = node
        self.targets = targets
        self.held_back: Lanes = frozenset()  # by the last request: their tenants have their share
        self._keyed_first = False
        self._claims = 0
        self._served: dict[str, int] = {}  # tenant -> the last claim that brought some of its jobs

    @property
    def room(self) -> int:
        if self.for_threads:
            return self.capacity.room
        return self.capacity.room_without_threads if self.capacity.threads_are_taken else 0

    def request(
        self,
        lanes: tuple[Lane, ...],
        room: int,
        prefetch: Micros,
        *,
        sweep: bool = False,
        urgent: bool = False,
    ) -> ClaimRequest:
        self._keyed_first = not self._keyed_first
        permits = self.worker.free_permits
        self.held_back = frozenset()
        if self.capacity.shared:
            lanes, room = self._fairly(lanes, room)
        return ClaimRequest(
            self.node, lanes, self.targets, room, prefetch, permits, self._keyed_first, sweep, urgent
        )

    def named(self, tickets: tuple[Ticket, ...], room: int) -> ClaimRequest:
        self._keyed_first = not self._keyed_first
        return ClaimRequest(
            self.node,
            (),
            self.targets,
            min(room, len(tickets)),
            PREFETCH,
            self.worker.free_permits,
            self._keyed_first,
            tickets=tickets,
        )

    def _fairly(self, lanes: tuple[Lane, ...], room: int) -> tuple[tuple[Lane, ...], int]:
        """The lanes of tenants that may take more slots, tenant by tenant."""
        tenants = dict.fromkeys(lane.tenant for lane in lanes)
        free = max(room, self.room)
        order, room = fair_turn(tenants, self.capacity.held_by, self._served, free, room)
        self.held_back = frozenset(name_of(lane) for lane in lanes if lane.tenant not in order)
        able = [lane for lane in lanes if lane.tenant in order]
        return tuple(sorted(able, key=lambda lane: order[lane.tenant])), room

    async def claim(self, request: ClaimRequest) -> Claims:
        """Hands what was claimed to the worker."""
        if not (request.lanes or request.tickets):
            return Claims([])
        began = self.capacity.monotonic()
        aside = request.sweep or bool(request.tickets) or not self.for_threads
        with self.capacity.reserve(request.room, sweep=aside, threads=self.for_threads):
            claims = await self.store.claim(request)
        self._claims += 1
        for job in claims.jobs:
            self._served[job.tenant] = self._claims
        self.worker.take(claims.jobs, self.capacity.monotonic() - began, passing=request.urgent)
        return claims


BATCH = 1_000
SMALL_BATCH = 200  # while urgent jobs keep coming: one that is claimed among many waits until all of them are
URGENT_FOR = SECOND  # how long they are expected to keep coming
PORTIONS = (
    3  # in which a worker takes its share of the jobs due at one instant, so that it leaves others theirs
)
MIN_PORTION = 40
PREFETCH = SECOND // 5
# How long before the next due time to claim: the prefetch then takes many jobs together. Not a round figure:
# jobs that people schedule are due
# at round distances from each other, and a claim sent at the instant when another job starts delays that
# start.
LEAD = SECOND // 19
NEXT_DUE_MARGIN = (
    SECOND // 50
)  # by how much longer than the claim the question for the next due time may take to the store
AFTER_SWEEP = SECOND // 100
LOOK_INTERVAL = SECOND  # hints may be lost
OUT_OF_ORDER_EVERY = 8  # full claims: then one for lanes behind the urgent ones
OUT_OF_ORDER_SHARE = 4  # of the room
# A claim whose reply was lost may still run, waiting for a lock, the disk or a standby. The store is asked
# about it for so long, first every
# second, then less and less often.
DOUBT_TIMEOUT = 300 * SECOND
RECALL_INTERVAL = SECOND
MAX_HELD = 100_000  # jobs of one node
NEVER: Micros = 1 << 62


class Claimer:
    """Claims jobs that are due or nearly so, as many as the worker has room for."""

    name = "claimer"

    def __init__(
        self,
        fetch: Fetch,
        clock: Clock,
        cursors: ClaimCursors,
        peers: Callable[[], int],
        rests: Callable[[], bool] = lambda: False,
    ) -> None:
        self._fetch = fetch
        self._rests = rests  # a broker brings the jobs; only those of queues with limits are claimed here
        self._worker = fetch.worker
        self._capacity = fetch.capacity
        self._clock = clock
        self._cursors = cursors
        self._peers = peers
        self._full_claims = 0  # in a row
        self._urgent_until: Micros = 0
        self._next_due: Micros = 0
        self._look_at: Micros = (
            0  # when to look at every lane; until then nothing is due except in lanes with news
        )
        self._recalled_at: Micros = 0
        self._wake_at: Micros = 0
        self._held_back: Lanes = frozenset()
        self.hungry = False  # out of room, or tenants have their share: wake me when a job was settled
        self._lacks_permits = False  # the last claim could take no job with a limit key

    async def run_once(self) -> Micros | None:
        if self._capacity.lost_reply_at is not None and self._fetch.for_threads:
            await self._recall(self._capacity.lost_reply_at)
        self._cursors.only_limited = self._rests()
        if self._cursors.only_limited and not self._cursors.limited:
            self.hungry = False
            return AFTER_SWEEP if self._capacity.recalling else LOOK_INTERVAL
        self._worker.arm()
        batch = SMALL_BATCH if self._clock.monotonic() < self._urgent_until else BATCH
        room = min(batch, self._fetch.room)
        self.hungry = room <= 0
        room = self._fetch.backpressure.allow(self._portion(room))
        if room <= 0 or not self._capacity.trusted():
            return AFTER_SWEEP if self._capacity.sweeping else LOOK_INTERVAL
        out_of_order = self._full_claims % OUT_OF_ORDER_EVERY == OUT_OF_ORDER_EVERY - 1
        look_at, news = self._next_look()
        request = self._out_of_order(room) if out_of_order else self._request(room, news)
        self._held_back = self._fetch.held_back
        self._cursors.look_at(self._held_back)
        self.hungry = bool(self._held_back)  # also for jobs that are settled during the claim
        began = self._clock.monotonic()
        claims = await self._fetch.claim(request)
        if out_of_order:
            self._cursors.read_out_of_order(claims.jobs)
        return await self._after_claim(request, claims, look_at, news, began)

    async def _after_claim(
        self, request: ClaimRequest, claims: Claims, look_at: Micros, news: Lanes | None, began: Micros
    ) -> Micros:
        now = self._clock.now()
        full = len(claims.jobs) >= request.room
        if claims.jobs and not full:
            await pause(0)  # they start before anything else happens here
        self._cursors.claimed(claims.jobs, now)
        self._capacity.claim_was_full(full)
        self.hungry, self._lacks_permits = bool(self._held_back), self._worker.free_permits <= 0
        if full:
            self._full_claims += 1
            return IMMEDIATELY if self._fetch.room > 0 else 0  # the store looks for more while these run
        self._full_claims = 0
        if self._room_for_more(request, claims):
            self._cursors.hinted(ALL_JOBS)
            return IMMEDIATELY
        self._cursors.exhausted(now, request.lanes)
        return await self._until_next(look_at, news, began)

    def _room_for_more(self, request: ClaimRequest, claims: Claims) -> bool:
        """There may be more to claim: jobs were set aside, or all permits that were asked for are in use."""
        if claims.more:
            return self._fetch.room > 0
        used_all = sum(map(needs_permit, claims.jobs)) >= (request.permits or 0)
        return used_all and self._worker.free_permits > 0 and self._fetch.room > 0

    def _portion(self, room: int) -> int:
        """Jobs claimed before their time wait anyway, here or elsewhere: leave other nodes their share, so
        that all start together."""
        peers = self._peers()
        if peers == 0 or self._clock.now() >= self._next_due:
            return room
        return min(room, max(MIN_PORTION, room // (PORTIONS * (peers + 1))))

    def hinted(self, hint: JobHint) -> bool:
        """Whether to claim now rather than at the time planned."""
        self._cursors.hinted(hint)
        if self._rests() and hint.queue not in (ANY_QUEUE, *self._cursors.limited):
            return False
        if self._worker.passes(hint.priority):
            self._urgent_until = self._clock.monotonic() + URGENT_FOR
        return hint.queue == ANY_QUEUE or hint.due_at - LEAD < self._wake_at

    def settled(self) -> bool:
        """Jobs were settled, or took the last thread: whether there is now what the last claim lacked."""
        permits = self._lacks_permits and self._worker.free_permits > 0
        return self._fetch.room > 0 and (self.hungry or permits)

    def _next_look(self) -> tuple[Micros, Lanes | None]:
        """Until when it is enough to look at lanes with news, and which these are. A turn that fails is
        followed by a look at all."""
        news, look_at = self._cursors.take_news(), self._look_at
        self._look_at, self._wake_at = 0, NEVER
        return (look_at, news) if news and self._clock.now() < look_at else (NEVER, None)

    async def _recall(self, since: Micros) -> None:
        """The reply to a claim was lost: ask the store which jobs this node holds. While the sweeper, the
        consumer or the settler waits for a reply that may bring jobs, the answer would be ambiguous; the next
        turn asks again."""
        now = self._clock.monotonic()
        if self._recalled_at > since and now - self._recalled_at < max(
            RECALL_INTERVAL, self._recalled_at - since
        ):
            return
        self._capacity.recalling = True
        known = self._worker.known()
        held = await self._fetch.store.running_jobs(OfNode(self._fetch.node), MAX_HELD)
        if self._capacity.sweeping or self._capacity.passing_on:
            return
        self._worker.release_unknown(held, known)
        self._capacity.recalling = False
        self._recalled_at = now
        if now - since > DOUBT_TIMEOUT and self._capacity.lost_reply_at == since:
            self._capacity.lost_reply_at = None

    async def _until_next(self, look_at: Micros, news: Lanes | None, began: Micros) -> Micros:
        """The next due time is asked for from a little before the end of the claim's prefetch: time has
        passed since, and neither would report a job that fell due in between."""
        prefetch = max(0, PREFETCH - (self._clock.monotonic() - began) - NEXT_DUE_MARGIN)
        seen_until = self._clock.now() + prefetch
        next_due = (
            await self._fetch.store.due_jobs(replace(self._request(1, news), prefetch=prefetch))
        ).next_at
        self._next_due = next_due or 0
        now = self._clock.now()
        claim_at = now + LOOK_INTERVAL if next_due is None else _when_to_claim(next_due, seen_until)
        look_at = min(look_at, now + LOOK_INTERVAL, claim_at)
        self._look_at = self._wake_at = look_at
        return max(0, look_at - now)

    def _request(self, room: int, news: Lanes | None) -> ClaimRequest:
        return self._fetch.request(self._cursors.from_cursors(news), room, PREFETCH)

    def _out_of_order(self, room: int) -> ClaimRequest:
        """A share of the room for jobs that would never be first while more urgent ones keep coming."""
        return self._fetch.request(
            self._cursors.least_recently_read(), max(1, room // OUT_OF_ORDER_SHARE), PREFETCH
        )


def _when_to_claim(next_due: Micros, seen_until: Micros) -> Micros:
    """A little ahead of a job's time. A due time that the claim has seen is the next start of a queue's rate:
    not ahead of that."""
    return next_due if next_due <= seen_until else next_due - LEAD

"""Claimer and Sweeper: they bring due jobs to the worker. Sleep until the next due time or a hint; never poll in a busy loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from duetime.clock import Clock, pause
from duetime.engine.brake import Brake
from duetime.engine.lanes import ALL_LANES, ANY_QUEUE, Lanes, News
from duetime.engine.loop import AT_ONCE
from duetime.engine.worker import Worker
from duetime.errors import StoreError
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.model.limit import Bound, Queue
from duetime.store import ClaimRequest, Lane, Store

BATCH = 1_000
SMALL_BATCH = 200  # while urgent jobs keep coming: one that is claimed among a crowd waits until all of them are
HURRY = SECOND  # how long they are expected to
PORTIONS = 3  # in which a worker takes its part of what is due at one instant, so that it does not take that of others
SMALLEST_PORTION = 40
PREFETCH = SECOND // 5
# How long before the next due time to claim: the prefetch then takes many at once. No round figure: jobs that people write are due at round
# distances from each other, and a claim sent off at the instant when another is to start keeps it waiting.
LEAD = SECOND // 19
ON_THE_WAY = SECOND // 50  # by how much longer than the claim the question what follows it may take to the store
AFTER_SWEEP = SECOND // 100
EVERYTHING = JobHint(ANY_QUEUE, 0, 0)
LOOK_AGAIN = SECOND  # hints may be lost
FRESH_CLOCK = 2 * SECOND
PATIENT_EVERY = 8  # claims that came back full: then one for those who wait behind the urgent ones
FETCHED = 16  # urgent jobs at once, past a crowd of others
SWEPT = 100  # jobs at once by a look at everything
PATIENT_PART = 4  # of the room
# A claim whose reply was lost may be under way still, waiting for a lock, for the disk or for a standby: asked about for so long, first
# every second, then more and more rarely.
IN_DOUBT = 300 * SECOND
BETWEEN_RECALLS = SECOND
LONGEST_BETWEEN_SWEEPS = 5 * SECOND  # a sweep that took long because the store stood still must not put off the next one for minutes


class Asked(NamedTuple):
    """What is the same in every claim of a node."""

    node: NodeId
    targets: tuple[str, ...]
    bounds: tuple[Bound, ...]


class Claimer:
    """Claims what is due or nearly so, as much as the worker has room for."""

    name = "claimer"

    def __init__(
        self, store: Store, clock: Clock, worker: Worker, lanes: Lanes, brake: Brake, asked: Asked, peers: Callable[[], int]
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._lanes = lanes
        self._brake = brake
        self._asked = asked
        self._peers = peers
        self._rated = any(bound.rate is not None for bound in asked.bounds)
        self._full = 0  # claims in a row that left something behind
        self._hurry_until: Micros = 0
        self._next_due: Micros = 0
        self._look_at: Micros = 0  # when to look at every lane; until then nothing is due but where news came from
        self._recalled_at: Micros = 0
        self.wake_at: Micros = 0
        self.hungry = False  # out of room: wake me when something was settled

    async def run_once(self) -> Micros | None:
        if self._worker.doubtful_since is not None:
            await self._recall(self._worker.doubtful_since)
        self._worker.arm()
        room = min(SMALL_BATCH if self._clock.monotonic() < self._hurry_until else BATCH, self._worker.room)
        self.hungry = room <= 0
        room = self._brake.allow(self._portion(room))
        if room <= 0 or not self._worker.may_start():
            return AFTER_SWEEP if self._worker.sweeping else LOOK_AGAIN
        patient = self._full % PATIENT_EVERY == PATIENT_EVERY - 1
        look_at, news = self._next_look()
        request = self._patient_request(room) if patient else self._request(room, news)
        began = self._clock.monotonic()
        jobs = await _claim(self._store, self._worker, request)
        if patient:
            self._lanes.had_turn(jobs)
        now = self._clock.now()
        self._lanes.claimed(jobs, now)
        full = len(jobs) >= request.room
        self._worker.more = min(2 * self._worker.more, BATCH) if full else 1
        if full:
            self._full += 1
            return self._after_full_claim()
        self._full = 0
        if self._rated:
            self._lanes.heard(EVERYTHING)  # what a rate holds up stays behind, however long it has been due
        else:
            self._lanes.exhausted(now, request.lanes)
        if jobs:
            await pause(0)  # they start before the store is asked what follows
        return await self._until_next(look_at, news, began)

    def _after_full_claim(self) -> Micros:
        """There is more: the store looks for it while these run. Not without room, and not where gates play a part: what may be claimed
        next depends on those that run first."""
        return AT_ONCE if self._worker.room > 0 and self._worker.fresh is None else 0

    def _portion(self, room: int) -> int:
        """Before their time jobs wait anyway, here or there: whoever asks first leaves others their part, and they start at once on all."""
        peers = self._peers() if self._clock.now() < self._next_due else 0
        return room if peers == 0 else min(room, max(SMALLEST_PORTION, room // (PORTIONS * (peers + 1))))

    def heard(self, hint: JobHint) -> bool:
        """Whether to claim now rather than at the time planned."""
        self._lanes.heard(hint)
        if self._worker.passes(hint.priority):
            self._hurry_until = self._clock.monotonic() + HURRY
        return hint.queue == ANY_QUEUE or hint.due_at - LEAD < self.wake_at

    def _next_look(self) -> tuple[Micros, News]:
        """Until when a look at what is new will do, and at what. A turn that fails is followed by a look at all."""
        news, look_at = self._lanes.news(), self._look_at
        self._look_at, self.wake_at = 0, 1 << 62
        return (look_at, news) if news.lanes and self._clock.now() < look_at else (1 << 62, ALL_LANES)

    async def _recall(self, since: Micros) -> None:
        """Claimed, and the reply lost: the store knows what this node holds, and what it does not hold yet, it may get. While the sweeper
        waits for a reply of its own, the answer would be ambiguous; the next turn asks again."""
        now = self._clock.monotonic()
        if self._recalled_at > since and now - self._recalled_at < max(BETWEEN_RECALLS, self._recalled_at - since):
            return
        known = self._worker.known()
        held = await self._store.held(self._asked.node)
        if self._worker.sweeping:
            return
        self._worker.give_back_strangers(held, known)
        self._recalled_at = now
        if now - since > IN_DOUBT and self._worker.doubtful_since == since:
            self._worker.doubtful_since = None

    async def _until_next(self, look_at: Micros, news: News, began: Micros) -> Micros:
        """The store is asked from where the claim left off, and a little before: time has passed since, and what fell into it neither would
        have told of."""
        prefetch = max(0, PREFETCH - (self._clock.monotonic() - began) - ON_THE_WAY)
        seen_until = self._clock.now() + prefetch
        next_due = await self._store.next_due(replace(self._request(1, news), prefetch=prefetch))
        self._next_due = next_due or 0
        now = self._clock.now()
        look_at = min(look_at, now + LOOK_AGAIN, now + LOOK_AGAIN if next_due is None else _when_to_claim(next_due, seen_until))
        self._look_at = self.wake_at = look_at
        return max(0, look_at - now)

    def _request(self, room: int, news: News) -> ClaimRequest:
        return _request(self._asked, self._worker, self._lanes.bounded(news.lanes), room, PREFETCH, exclusive=news.exclusive)

    def _patient_request(self, room: int) -> ClaimRequest:
        """A part of the room, for those who would never be first while more urgent ones keep coming."""
        return _request(self._asked, self._worker, self._lanes.patient(), max(1, room // PATIENT_PART), PREFETCH)


class Sweeper:
    """Looks at everything now and then: what lies below the bounds, what a lost hint would have told, queues that are new. Having a
    connection of its own, it also fetches an urgent job while a large claim of less urgent ones is under way."""

    name = "sweeper"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        worker: Worker,
        lanes: Lanes,
        brake: Brake,
        asked: Asked,
        only: tuple[str, ...],
        on_more: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._lanes = lanes
        self._brake = brake
        self._asked = asked
        self._only = only
        self._on_more = on_more  # there may be more to claim than the claimer knows of
        self._urgent: dict[tuple[str, int], Micros] = {}  # lane -> from where on to read it
        self._next_sweep: Micros = 0

    def heard(self, hint: JobHint) -> bool:
        """Whether to fetch this one past those that wait here already."""
        if hint.queue == ANY_QUEUE or not self._worker.passes(hint.priority) or hint.due_at - LEAD > self._clock.now():
            return False
        lane = (hint.queue, hint.priority)
        self._urgent[lane] = min(hint.due_at, self._urgent.get(lane, hint.due_at))
        return True

    async def run_once(self) -> Micros:
        began = self._clock.monotonic()
        if self._urgent and began < self._next_sweep:
            await self._fetch_urgent()
        else:
            self._next_sweep = began + await self._look_around()
        return max(0, self._next_sweep - self._clock.monotonic())

    async def _fetch_urgent(self) -> None:
        lanes = [Lane(queue, priority, low) for (queue, priority), low in self._urgent.items() if queue in self._lanes]
        self._urgent.clear()
        # Beyond the room there is: tasks so short that many wait here will let these few pass in a moment.
        room = self._brake.allow(max(self._worker.room, FETCHED if self._worker.pace.soon() >= FETCHED else 0))
        if lanes and room > 0 and self._worker.may_start():
            lanes.sort(key=lambda lane: -lane.priority)
            request = _request(self._asked, self._worker, tuple(lanes), min(room, FETCHED), LEAD)
            await self._claim(replace(request, sweep=True, urgent=True))

    async def _look_around(self) -> Micros:
        """How long to wait for the next look."""
        began = self._clock.monotonic()
        self._urgent.clear()
        met = self._meet(await self._store.queues())
        room = self._brake.allow(min(BATCH, self._worker.room))
        if met or room <= 0:  # the claimer takes more at once, now or when there is room
            self._lanes.heard(EVERYTHING)
            self._on_more()
        elif self._worker.may_start():
            await self._sweep(min(room, SWEPT))
        if self._clock.sample_age > FRESH_CLOCK:
            await self._clock.follow(self._store.time)
        return min(max(SECOND, 20 * (self._clock.monotonic() - began)), LONGEST_BETWEEN_SWEEPS)

    def _meet(self, queues: list[Queue]) -> bool:
        """Whether some of them were unknown here."""
        limited = frozenset(queue.name for queue in queues if queue.most is not None or queue.rate is not None)
        self._lanes.limited = self._worker.limited = limited
        strange = [] if self._only else [queue.name for queue in queues if queue.name not in self._lanes]
        self._lanes.add(strange)
        return bool(strange)

    async def _sweep(self, room: int) -> None:
        """A few: whoever is urgent waits behind this. If there are more like them, the next claim shall find those, too."""
        request = _request(self._asked, self._worker, self._lanes.unbounded(), room, prefetch=0)
        jobs = await self._claim(replace(request, sweep=True))
        if len(jobs) >= room:
            for job in jobs:
                self._lanes.heard(JobHint(job.queue, job.priority, job.due_at))
            self._on_more()

    async def _claim(self, request: ClaimRequest) -> list[Claimed]:
        self._worker.sweeping = True
        try:
            return await _claim(self._store, self._worker, request)
        finally:
            self._worker.sweeping = False


def _when_to_claim(next_due: Micros, seen_until: Micros) -> Micros:
    """A little ahead of a job's time. What the claim has seen and not taken is a rate's next start, and that has no ahead."""
    return next_due if next_due <= seen_until else next_due - LEAD


def _request(asked: Asked, worker: Worker, lanes: tuple[Lane, ...], room: int, prefetch: Micros, *, exclusive: bool = True) -> ClaimRequest:
    bounds = worker.bounds(asked.bounds)
    return ClaimRequest(asked.node, lanes, asked.targets, room, prefetch, exclusive, bounds=bounds, fresh=worker.fresh)


async def _claim(store: Store, worker: Worker, request: ClaimRequest) -> list[Claimed]:
    """Hands what was claimed to the worker. The room is reserved meanwhile; a lost reply leaves in doubt what the node holds."""
    worker.reserved += request.room
    began = worker.monotonic()
    try:
        jobs = await store.claim(request)
    except StoreError:
        worker.doubtful_since = worker.monotonic()
        raise
    finally:
        worker.reserved -= request.room
    lapse = worker.monotonic() - began
    worker.take(jobs, passing=request.urgent)
    asyncio.get_running_loop().call_soon(worker.on_claimed, jobs, lapse)  # the first of them starts before anybody is told
    return jobs

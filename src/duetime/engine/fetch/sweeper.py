"""The sweeper: looks at everything now and then. It finds rows below the claim cursors, jobs whose hint was
lost, free permits and new queues.

It has its own connection, so it also fetches an urgent job while a large claim of less urgent ones is under
way."""

from __future__ import annotations

from collections.abc import Callable

from duetime.clock import Clock
from duetime.engine.fetch.claimer import BATCH, LEAD, Fetch
from duetime.engine.fetch.consumer import Consumer
from duetime.engine.fetch.cursors import ALL_JOBS, ANY_QUEUE, ClaimCursors, LaneName, name_of
from duetime.engine.run.outbox import Outbox
from duetime.model.api_key import ALL_TENANTS, KEY, ApiKey, Scope
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.store import Lane, Store

MAX_CLOCK_AGE = 2 * SECOND
MAX_URGENT = 16  # urgent jobs fetched together
MAX_SWEPT = 100  # jobs claimed by one sweep
# While a broker brings the jobs, those that are overdue by this much: their messages may be lost
OVERDUE = SECOND
TENANT = "tenant"  # the kind of the records of tenants that nodes have met
MAX_TENANTS = 1_000
SHARING = 2  # tenants that share the slots: whether there are more makes no difference
LEARN_INTERVAL = 10 * SECOND
TENANT_KEPT_FOR = 30 * 86_400 * SECOND
MAX_SWEEP_INTERVAL = (
    5 * SECOND
)  # a sweep that took long because the store stalled must not delay the next one for minutes


class Sweeper:
    name = "sweeper"

    def __init__(
        self,
        fetch: Fetch,
        clock: Clock,
        cursors: ClaimCursors,
        outbox: Outbox,
        on_more: Callable[[], None],
        consumer: Consumer | None = None,
    ) -> None:
        self._consumer = consumer
        self._fetch = fetch
        self._capacity = fetch.capacity
        self._clock = clock
        self._cursors = cursors
        self._outbox = outbox
        self._on_more = on_more  # there may be more to claim than the claimer knows
        self._met: set[str] = set()  # tenants that are recorded
        self._learn_at: Micros = 0
        self._urgent: dict[LaneName, Micros] = {}  # lane -> from where on to read it
        self._next_sweep: Micros = 0

    def hinted(self, hint: JobHint) -> bool:
        """Whether to fetch this job past those that wait here already."""
        if (
            self._rests
            or hint.queue == ANY_QUEUE
            or not self._fetch.worker.passes(hint.priority)
            or hint.due_at - LEAD > self._clock.now()
        ):
            return False
        lane = name_of(hint)
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
        lanes = [
            Lane(lane[0], lane[1], low, lane[2])
            for lane, low in self._urgent.items()
            if lane in self._cursors
        ]
        self._urgent.clear()
        # Beyond the room: where many short tasks wait, these few start before them.
        extra = MAX_URGENT if self._capacity.rate.soon() >= MAX_URGENT else 0
        room = self._fetch.backpressure.allow(max(self._capacity.room, extra))
        if lanes and room > 0 and self._capacity.trusted():
            lanes.sort(key=lambda lane: -lane.priority)
            await self._fetch.claim(
                self._fetch.request(tuple(lanes), min(room, MAX_URGENT), LEAD, sweep=True, urgent=True)
            )

    async def _look_around(self) -> Micros:
        """How long to wait for the next look."""
        began = self._clock.monotonic()
        self._urgent.clear()
        await self._learn_tenants()
        found_new = await self._cursors.look_around(self._fetch.store)
        self._outbox.limited_queues = self._cursors.limited
        room = self._fetch.backpressure.allow(min(BATCH, self._capacity.room))
        if (
            found_new and not self._rests
        ) or room <= 0:  # the claimer takes more jobs together, now or when there is room
            self._cursors.hinted(ALL_JOBS)
            self._on_more()
        elif self._capacity.trusted():
            await self._sweep(min(room, MAX_SWEPT))
        if self._clock.sample_age > MAX_CLOCK_AGE:
            await self._clock.follow(self._fetch.store.time)
        return min(max(SECOND, 20 * (self._clock.monotonic() - began)), MAX_SWEEP_INTERVAL)

    @property
    def _rests(self) -> bool:
        return self._consumer is not None and self._consumer.delivers

    async def _learn_tenants(self) -> None:
        """Those that nodes have met lately, or that may submit, have a share of the slots, also while they
        have no jobs: otherwise the first job of a tenant would wait behind the flood of another."""
        store, tenants, now = self._fetch.store, self._cursors.tenants, self._clock.now()
        if len(tenants) < SHARING and self._clock.monotonic() >= self._learn_at:
            self._learn_at = self._clock.monotonic() + LEARN_INTERVAL
            records = await store.list_records(TENANT, None, MAX_TENANTS)
            with_keys = await _tenants_with_keys(store, now)
            tenants.update((record.tenant for record in records), with_keys)
            self._met |= with_keys  # their keys tell of them
        for tenant in tenants - self._met:
            await store.put_record(TENANT, tenant, "met", b"", expires_at=now + TENANT_KEPT_FOR)
            self._met.add(tenant)

    async def _sweep(self, room: int) -> None:
        """A few jobs: urgent ones wait behind this claim. If there are more, the next claim finds them."""
        prefetch = -OVERDUE if self._rests else 0
        jobs, more = await self._fetch.claim(
            self._fetch.request(self._cursors.from_start(), room, prefetch, sweep=True)
        )
        if jobs and self._consumer is not None:
            self._consumer.found_overdue()
        if len(jobs) >= room or more:
            for job in jobs:
                self._cursors.hinted(JobHint(job.queue, job.priority, job.due_at, job.tenant))
            self._on_more()


async def _tenants_with_keys(store: Store, now: Micros) -> set[str]:
    """Of active keys that may submit; not all, once there are enough to share."""
    found: set[str] = set()
    after = ""
    while len(found) < SHARING:
        rows = await store.list_records(KEY, ALL_TENANTS, MAX_TENANTS, (ALL_TENANTS, after))
        keys = [ApiKey.from_value(row.key, row.value) for row in rows]
        found |= {one.tenant for one in keys if Scope.SUBMIT in one.scopes and one.state(now) == "active"}
        if len(rows) < MAX_TENANTS:
            break
        after = rows[-1].key
    return found

"""Claim cursors: the lanes a worker claims from, and from where on to read each of them.

Claimed rows leave dead index entries at the left edge of a lane, which a long transaction elsewhere can keep
alive. Reading each lane from the last due time seen keeps the cost of a claim flat; rows below the cursor (a
late commit, a retry) are found by the sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import DEFAULT_TENANT, HIGHEST_PRIORITY, LOWEST_PRIORITY, Claimed
from duetime.model.limit import QueueFilter
from duetime.store import DueJob, Lane, Store

SLACK = 5 * SECOND  # how far behind now an exhausted lane is still read: transactions take a while to commit
ANY_QUEUE = "*"
ALL_JOBS = JobHint(ANY_QUEUE, 0, 0)
MAX_QUEUES = 1_000  # with jobs, that one look meets
FOR_WORKERS = QueueFilter(for_workers=True, limit=MAX_QUEUES)
LaneName = tuple[str, int, str]  # queue, priority, tenant
Lanes = frozenset[LaneName]


class ClaimCursors:
    """Begins with all priorities of some queues. Other lanes are added when a hint or a look at the store
    names them, unless the queues are `fixed`, and forgotten when they are empty."""

    def __init__(self, queues: Iterable[str], *, fixed: bool = False) -> None:
        self._queues = frozenset(queues)
        self._fixed = fixed
        self._low: dict[LaneName, Micros] = {
            (queue, priority, DEFAULT_TENANT): 0
            for queue in self._queues
            for priority in range(LOWEST_PRIORITY, HIGHEST_PRIORITY + 1)
        }
        self._first = frozenset(self._low)
        self.tenants: set[str] = set()  # that have had jobs
        self._seen: set[LaneName] = set()  # since the look at the store began
        self._served: dict[LaneName, int] = {}  # lane -> the last time it was read out of order
        self._reads = 0
        self.limited: frozenset[str] = (
            frozenset()
        )  # queues whose jobs may wait, however long they have been due
        self.only_limited = False  # claim from these only: a broker brings the other jobs
        self._after = ""  # the last queue that the look at the store has met
        self._ordered: tuple[LaneName, ...] | None = None  # sorted when it is read next
        self._hinted: set[LaneName] | None = None  # lanes with new jobs since `take_news`; None: any lane

    async def look_around(self, store: Store) -> bool:
        """Learn from the store which lanes have jobs and which queues have limits. Returns whether some lanes
        were unknown here. Where there are very many queues, the next look goes on where this one stopped."""
        queues = await store.queues(wanted=FOR_WORKERS._replace(after=self._after))
        self.limited = frozenset(
            queue.name for queue in queues if queue.max_running is not None or queue.rate is not None
        )
        busy = [queue for queue in queues if queue.lanes]
        self._after = busy[-1].name if len(busy) >= MAX_QUEUES else ""
        lanes = (Lane(queue.name, priority, 0, tenant) for queue in busy for priority, tenant in queue.lanes)
        return self.learn(lanes, complete=not self._after)

    def learn(self, lanes: Iterable[Lane], *, complete: bool) -> bool:
        """Lanes that have jobs, as the store says; `complete` after the last of them: lanes that were not
        among them, nor named by a hint meanwhile, are empty. Returns whether some were unknown."""
        added = [self._add((lane.queue, lane.priority, lane.tenant), lane.low) for lane in lanes]
        if complete:
            for lane in self._low.keys() - self._first - self._seen:
                del self._low[lane]
                self._served.pop(lane, None)
                self._ordered = None
            self._seen = set() if self._hinted is None else set(self._hinted)
        return any(added)

    def _add(self, lane: LaneName, low: Micros) -> bool:
        self._seen.add(lane)
        self.tenants.add(lane[2])
        if lane in self._low or (self._fixed and lane[0] not in self._queues):
            return False
        self._low[lane], self._ordered = low, None
        return True

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(sorted({queue for queue, _, _ in self._low}))

    @property
    def has_news(self) -> bool:
        """Something may have come that no claim has looked for."""
        return self._hinted is None or bool(self._hinted)

    def __contains__(self, lane: LaneName) -> bool:
        return lane in self._low

    def from_cursors(self, only: Lanes | None = None) -> tuple[Lane, ...]:
        """Most urgent first."""
        limited, known = self.limited, self._low
        lanes = self._in_order() if only is None else sorted(only & known.keys(), key=_most_urgent_first)
        return tuple(
            Lane(lane[0], lane[1], 0 if lane[0] in limited else known[lane], lane[2])
            for lane in lanes
            if not self.only_limited or lane[0] in limited
        )

    def least_recently_read(self) -> tuple[Lane, ...]:
        """Those not read out of order for longest first: under a flood of urgent jobs no other claim reads
        them."""
        return tuple(
            sorted(self.from_cursors(), key=lambda lane: (self._served.get(name_of(lane), 0), lane.priority))
        )

    def read_out_of_order(self, jobs: Iterable[Claimed]) -> None:
        self._reads += 1
        self._served.update((name_of(job), self._reads) for job in jobs)

    def from_start(self) -> tuple[Lane, ...]:
        return tuple(Lane(queue, priority, 0, tenant) for queue, priority, tenant in self._in_order())

    def _in_order(self) -> tuple[LaneName, ...]:
        if self._ordered is None:
            self._ordered = tuple(sorted(self._low, key=_most_urgent_first))
        return self._ordered

    def hinted(self, hint: JobHint) -> None:
        """A job due at this instant was stored: read its lane from there."""
        if hint.queue == ANY_QUEUE:
            self._low = dict.fromkeys(self._low, 0)
            self._hinted = None
        else:
            self._add(lane := name_of(hint), hint.due_at)
            if lane in self._low:
                self._low[lane] = min(self._low[lane], hint.due_at)
                self.look_at([lane])
                if hint.queue in self.limited:  # a place in it is for any of its jobs
                    self.look_at(other for other in self._low if other[0] == hint.queue)

    def look_at(self, lanes: Iterable[LaneName]) -> None:
        """There may be something to claim in these."""
        if self._hinted is not None:
            self._hinted.update(lanes)

    def take_news(self) -> Lanes | None:
        """The lanes with new jobs since the last call; None for all of them."""
        news, self._hinted = None if self._hinted is None else frozenset(self._hinted), set()
        return news

    def claimed(self, jobs: Iterable[Claimed | DueJob], now: Micros) -> None:
        """Never above now: a job stored later may be due before one claimed ahead of time."""
        for job in jobs:
            lane = name_of(job)
            if self._low.get(lane, now) < job.due_at <= now:
                self._low[lane] = job.due_at

    def exhausted(self, now: Micros, lanes: Iterable[Lane]) -> None:
        """Everything due in these was claimed, unless a hint has come since."""
        floor, hinted = now - SLACK, self._hinted or ()
        for lane in map(name_of, lanes):
            if lane in self._low and lane not in hinted:
                self._low[lane] = max(self._low[lane], floor)


name_of: Callable[[Lane | JobHint | Claimed | DueJob], LaneName] = attrgetter("queue", "priority", "tenant")


def _most_urgent_first(lane: LaneName) -> tuple[int, str, str]:
    queue, priority, tenant = lane
    return -priority, queue, tenant

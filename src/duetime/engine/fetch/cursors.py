"""Claim cursors: the lanes a worker claims from, and from where on to read each of them.

Claimed rows leave dead index entries at the left edge of a lane, which a long transaction elsewhere can keep
alive. Reading each lane from the last due time seen keeps the cost of a claim flat; rows below the cursor (a
late commit, a retry) are found by the sweep."""

from __future__ import annotations

from collections.abc import Iterable

from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY, Claimed
from duetime.store import Lane

SLACK = 5 * SECOND  # how far behind now an exhausted lane is still read: transactions take a while to commit
ANY_QUEUE = "*"
ALL_JOBS = JobHint(ANY_QUEUE, 0, 0)


Lanes = frozenset[tuple[str, int]]


class ClaimCursors:
    def __init__(self, queues: Iterable[str]) -> None:
        self._low: dict[tuple[str, int], Micros] = {}
        self._served: dict[tuple[str, int], int] = {}  # lane -> the last time it was read out of order
        self._reads = 0
        self.limited: frozenset[str] = (
            frozenset()
        )  # queues whose jobs may wait, however long they have been due
        self._ordered: tuple[tuple[str, int], ...] = ()
        self._hinted: set[tuple[str, int]] | None = (
            None  # lanes with new jobs since `take_news`; None: any lane
        )
        self.add(queues)

    def add(self, queues: Iterable[str]) -> None:
        for queue in queues:
            for priority in range(LOWEST_PRIORITY, HIGHEST_PRIORITY + 1):
                self._low.setdefault((queue, priority), 0)
        self._ordered = tuple(sorted(self._low, key=_most_urgent_first))

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(sorted({queue for queue, _ in self._low}))

    @property
    def has_news(self) -> bool:
        """Something may have come that no claim has looked for."""
        return self._hinted is None or bool(self._hinted)

    def __contains__(self, queue: str) -> bool:
        return (queue, HIGHEST_PRIORITY) in self._low

    def from_cursors(self, only: Lanes | None = None) -> tuple[Lane, ...]:
        """Most urgent first."""
        limited, lanes = self.limited, self._ordered if only is None else sorted(only, key=_most_urgent_first)
        return tuple(
            Lane(queue, priority, 0 if queue in limited else self._low[queue, priority])
            for queue, priority in lanes
        )

    def least_recently_read(self) -> tuple[Lane, ...]:
        """Those not read out of order for longest first: under a flood of urgent jobs no other claim reads
        them."""
        return tuple(
            sorted(self.from_cursors(), key=lambda lane: (self._served.get(lane[:2], 0), lane.priority))
        )

    def read_out_of_order(self, jobs: Iterable[Claimed]) -> None:
        self._reads += 1
        self._served.update(((job.queue, job.priority), self._reads) for job in jobs)

    def from_start(self) -> tuple[Lane, ...]:
        return tuple(Lane(queue, priority, 0) for queue, priority in self._ordered)

    def hinted(self, hint: JobHint) -> None:
        """A job due at this instant was stored: read its lane from there."""
        if hint.queue == ANY_QUEUE:
            self._low = dict.fromkeys(self._low, 0)
            self._hinted = None
        elif (hint.queue, hint.priority) in self._low:
            lane = (hint.queue, hint.priority)
            self._low[lane] = min(self._low[lane], hint.due_at)
            if self._hinted is not None:
                self._hinted.add(lane)

    def take_news(self) -> Lanes | None:
        """The lanes with new jobs since the last call; None for all of them."""
        news, self._hinted = None if self._hinted is None else frozenset(self._hinted), set()
        return news

    def claimed(self, jobs: Iterable[Claimed], now: Micros) -> None:
        """Never above now: a job stored later may be due before one claimed ahead of time."""
        for job in jobs:
            lane = (job.queue, job.priority)
            if self._low[lane] < job.due_at <= now:
                self._low[lane] = job.due_at

    def exhausted(self, now: Micros, lanes: Iterable[Lane]) -> None:
        """Everything due in these was claimed."""
        floor = now - SLACK
        for queue, priority, _ in lanes:
            self._low[queue, priority] = max(self._low[queue, priority], floor)


def _most_urgent_first(lane: tuple[str, int]) -> tuple[int, str]:
    queue, priority = lane
    return -priority, queue

"""The lanes a worker claims from, and from where on to read each of them.

Claimed rows leave dead index entries at the left edge of a lane which a long transaction elsewhere can keep alive. Reading each lane
from the last due time seen keeps a claim's cost flat; whatever lies below the bound (a late commit, a retry) is found by the sweep.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY, Claimed
from duetime.store import Lane

SLACK = 5 * SECOND  # how far behind now an exhausted lane is still read: transactions take a while to commit
ANY_QUEUE = "*"


class News(NamedTuple):
    lanes: frozenset[tuple[str, int]] | None  # into which something came; None for all of them
    exclusive: bool  # and some of it may be of schedules that run one at a time


ALL_LANES = News(None, exclusive=True)


class Lanes:
    def __init__(self, queues: Iterable[str]) -> None:
        self._low: dict[tuple[str, int], Micros] = {}
        self._served: dict[tuple[str, int], int] = {}  # lane -> its last turn out of order
        self._turns = 0
        self.limited: frozenset[str] = frozenset()  # queues whose jobs may be held up, however long they have been due
        self._ordered: tuple[tuple[str, int], ...] = ()
        self._told: set[tuple[str, int]] | None = None  # lanes something came into since `news` was asked for; None: any of them
        self._told_exclusive = True  # some of it may be of schedules that run one at a time
        self.add(queues)

    def add(self, queues: Iterable[str]) -> None:
        for queue in queues:
            for priority in range(LOWEST_PRIORITY, HIGHEST_PRIORITY + 1):
                self._low.setdefault((queue, priority), 0)
        self._ordered = tuple(sorted(self._low, key=_most_urgent_first))

    def __contains__(self, queue: str) -> bool:
        return (queue, HIGHEST_PRIORITY) in self._low

    def bounded(self, only: frozenset[tuple[str, int]] | None = None) -> tuple[Lane, ...]:
        """Most urgent first."""
        limited, lanes = self.limited, self._ordered if only is None else sorted(only, key=_most_urgent_first)
        return tuple(Lane(queue, priority, 0 if queue in limited else self._low[queue, priority]) for queue, priority in lanes)

    def patient(self) -> tuple[Lane, ...]:
        """Those that had no turn out of order for longest first: under a flood nobody else looks at them."""
        return tuple(sorted(self.bounded(), key=lambda lane: (self._served.get(lane[:2], 0), lane.priority)))

    def had_turn(self, jobs: Iterable[Claimed]) -> None:
        self._turns += 1
        self._served.update(((job.queue, job.priority), self._turns) for job in jobs)

    def unbounded(self) -> tuple[Lane, ...]:
        return tuple(Lane(queue, priority, 0) for queue, priority in self._ordered)

    def heard(self, hint: JobHint) -> None:
        """Something due at this instant was stored: read its lane from there."""
        if hint.queue == ANY_QUEUE:
            self._low = dict.fromkeys(self._low, 0)
            self._told = None
        elif (hint.queue, hint.priority) in self._low:
            lane = (hint.queue, hint.priority)
            self._low[lane] = min(self._low[lane], hint.due_at)
            self._told_exclusive = self._told_exclusive or hint.exclusive
            if self._told is not None:
                self._told.add(lane)

    def news(self) -> News:
        """What was heard of since this was last asked."""
        news = News(None if self._told is None else frozenset(self._told), self._told is None or self._told_exclusive)
        self._told, self._told_exclusive = set(), False
        return news

    def claimed(self, jobs: Iterable[Claimed], now: Micros) -> None:
        """Never above now: a job stored a moment later may be due before one claimed ahead of time."""
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

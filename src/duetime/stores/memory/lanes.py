"""Pending jobs: claimable ones by lane and due time, waiting ones by the name of the permit they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace, merge
from itertools import count

from duetime.model.instant import Micros
from duetime.store import Lane
from duetime.stores.memory.due_heap import DueHeap
from duetime.stores.memory.row import Row

Name = tuple[str, int, str]  # queue, priority, tenant
Order = tuple[
    int, Micros, int, int, Row
]  # most urgent first, then oldest due; unique by its ticket, so rows are never compared


class Lanes:
    def __init__(self) -> None:
        self._heaps: dict[
            Name, dict[tuple[str, bool], DueHeap]
        ] = {}  # by target, and whether a job needs a permit
        self._ready: dict[Name, int] = {}
        self._waiting: dict[str, list[Order]] = {}
        self._tickets = count(1)

    def push(self, row: Row) -> None:
        draft = row.draft
        name = (draft.queue, draft.priority, draft.tenant)
        self._heap(row).push(row, next(self._tickets))
        self._ready[name] = self._ready.get(name, 0) + 1

    def wait(self, row: Row, name: str) -> None:
        row.waits_for, row.ticket = name, next(self._tickets)
        order = (-row.draft.priority, row.draft.due_at, row.draft.id.int, row.ticket, row)
        heappush(self._waiting.setdefault(name, []), order)

    def forget(self, row: Row) -> None:
        if row.waits_for is not None:
            row.waits_for, row.ticket = None, 0
        elif row.ticket:
            self._heap(row).forget(row)
            self._ready[row.draft.queue, row.draft.priority, row.draft.tenant] -= 1

    def names(self) -> list[str]:
        """The permits that jobs wait for."""
        return [name for name in list(self._waiting) if self.first_waiting(name) is not None]

    def first_waiting(self, name: str) -> Row | None:
        """The best job that waits for this permit."""
        entries = self._waiting.get(name, [])
        while entries:
            ticket, row = entries[0][3:]
            if row.ticket == ticket and row.waits_for == name:
                return row
            heappop(entries)
        self._waiting.pop(name, None)
        return None

    def promote(self, name: str, number: int) -> list[Row]:
        """The best jobs that wait for this permit become claimable."""
        promoted: list[Row] = []
        while len(promoted) < number and (row := self.first_waiting(name)) is not None:
            self.forget(row)
            self.push(row)
            promoted.append(row)
        return promoted

    def is_empty(self, lane: Lane) -> bool:
        """Most of the lanes a worker asks for are."""
        return not self._ready.get(_name(lane))

    def with_jobs(self) -> list[Name]:
        """Lanes that have claimable jobs, now or later, in order."""
        for name in [name for name, number in self._ready.items() if not number]:
            del self._ready[name], self._heaps[name]
        return sorted(self._ready)

    def take(self, lane: Lane, targets: frozenset[str], until: Micros, *, bound: bool) -> Iterator[Row]:
        """Takes claimable rows out, oldest due first; the caller starts each or pushes it again."""
        name = _name(lane)
        heaps = [
            heap
            for (target, needs), heap in self._heaps.get(name, {}).items()
            if target in targets and needs is bound
        ]
        heads = [(first, heap) for heap in heaps if (first := heap.first())]
        heapify(heads)
        while heads and heads[0][0][0] <= until:
            entry, heap = heads[0]
            heap.drop_first()
            self._ready[name] -= 1
            yield entry[3]
            following = heap.first()
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (following, heap))

    def in_order(self, lane: Lane, *, bound: bool) -> Iterator[Row]:
        """Every claimable row, now or later, oldest due first."""
        heaps = self._heaps.get(_name(lane), {}).items()
        rows = [heap.in_order() for (_, needs), heap in heaps if needs is bound]
        return merge(*rows, key=lambda row: row.draft.due_at)

    def next_due(self, lane: Lane, targets: frozenset[str], now: Micros, prefetch: Micros) -> Micros | None:
        """A job that needs a permit may have been left by the claim that looked ahead: of these every one
        that is not due yet counts."""
        found = (
            heap.first_after(now if needs else now + prefetch)
            for (target, needs), heap in self._heaps.get(_name(lane), {}).items()
            if target in targets
        )
        return min((due_at for due_at in found if due_at is not None), default=None)

    def has_due(self, lane: Lane, targets: frozenset[str], moment: Micros) -> bool:
        heaps = self._heaps.get(_name(lane), {}).items()
        heads = [heap.first() for (target, _), heap in heaps if target in targets]
        return any(head is not None and head[0] <= moment for head in heads)

    def _heap(self, row: Row) -> DueHeap:
        draft = row.draft
        lane = self._heaps.setdefault((draft.queue, draft.priority, draft.tenant), {})
        key = (draft.target, row.needs_permit)
        if key not in lane:
            lane[key] = DueHeap()
        return lane[key]


def _name(lane: Lane) -> Name:
    return lane.queue, lane.priority, lane.tenant

"""Pending jobs in the order in which they fall due: one heap per queue, priority, target and exclusiveness; gated ones in turns."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from itertools import count

from duetime.model.instant import Micros
from duetime.stores.memory.heap import DueHeap
from duetime.stores.memory.quotas import Quotas
from duetime.stores.memory.row import Row
from duetime.stores.memory.turns import Gates, Turn

Name = tuple[str, int]  # queue, priority


class Lanes:
    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._heaps: dict[Name, dict[tuple[str, bool], DueHeap]] = {}
        self._gates: dict[Name, dict[str, Gates]] = {}
        self._waiting: dict[Name, int] = {}  # rows without a gate
        self._full: dict[str, dict[Turn, None]] = {}
        self._tickets = count(1)
        self.orders = count(1)  # of turns
        self.plain_order: dict[Name, int] = {}  # when the jobs without a gate have their next turn

    def waits_in(self, queue: str, priority: int) -> bool:
        """Whether anything does: most of the lanes a worker asks about are empty."""
        name = (queue, priority)
        if self._waiting.get(name, 0) > 0:
            return True
        targets = self._gates.get(name)
        return targets is not None and any(gates.waiting for gates in targets.values())

    def push(self, row: Row) -> None:
        draft = row.draft
        if draft.gate is not None:
            self._gates_of(row).push(row, next(self._tickets))
            return
        self._heap(row).push(row, next(self._tickets))
        name = (draft.queue, draft.priority)
        self._waiting[name] = self._waiting.get(name, 0) + 1

    def forget(self, row: Row) -> None:
        if not row.ticket:
            return
        if row.draft.gate is not None:
            self._gates_of(row).forget(row)
            return
        self._heap(row).forget(row)
        self._waiting[row.draft.queue, row.draft.priority] -= 1

    def freed(self, gate: str) -> list[Turn]:
        """A job of this gate runs no more. Answers whoever waited for that."""
        back = [turn for turn in self._full.pop(gate, ()) if turn.waits_for_a_place()]
        for turn in back:
            turn.owner.bring_back(turn)
        return back

    def gated(self, queue: str, priority: int) -> dict[str, Gates]:
        """By target."""
        return self._gates.get((queue, priority), {})

    def drain(self, queue: str, priority: int, targets: frozenset[str], exclusive: bool, until: Micros) -> Iterator[Row]:
        """Takes rows without a gate out, oldest due first. The caller starts each, or pushes it again once it has stopped draining."""
        name = (queue, priority)
        heads = [(first, heap) for heap in self._wanted(queue, priority, targets, exclusive) if (first := heap.first())]
        heapify(heads)
        while heads and heads[0][0][0] <= until:
            _, heap = heads[0]
            # The caller may have started another row of this heap since its head was read.
            if (entry := heap.first()) is not None and entry == heads[0][0]:
                heap.drop_first()
                self._waiting[name] -= 1
                yield entry[3]
            following = heap.first()
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (following, heap))

    def next_due(self, queue: str, priority: int, targets: frozenset[str], moment: Micros) -> Micros | None:
        found = (heap.first_after(moment) for heap in self._wanted(queue, priority, targets, exclusive=True))
        return min((due_at for due_at in found if due_at is not None), default=None)

    def has_due(self, queue: str, priority: int, targets: frozenset[str], moment: Micros) -> bool:
        heads = [heap.first() for heap in self._wanted(queue, priority, targets, exclusive=True)]
        gated = (gates for target, gates in self.gated(queue, priority).items() if target in targets)
        return any(head is not None and head[0] <= moment for head in heads) or any(gates.has_due(moment) for gates in gated)

    def _wanted(self, queue: str, priority: int, targets: frozenset[str], exclusive: bool) -> list[DueHeap]:
        lane = self._heaps.get((queue, priority), {})
        return [heap for (target, alone), heap in lane.items() if target in targets and (exclusive or not alone)]

    def _heap(self, row: Row) -> DueHeap:
        draft = row.draft
        lane = self._heaps.setdefault((draft.queue, draft.priority), {})
        key = (draft.target, row.exclusive)
        if key not in lane:
            lane[key] = DueHeap()
        return lane[key]

    def _gates_of(self, row: Row) -> Gates:
        draft = row.draft
        lane = self._gates.setdefault((draft.queue, draft.priority), {})
        if draft.target not in lane:
            lane[draft.target] = Gates((draft.queue, draft.priority), self._quotas, self.orders, self._full)
        return lane[draft.target]

"""Rows in the order in which they fall due."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from duetime.model.instant import Micros
from duetime.stores.memory.row import Row

Entry = tuple[
    Micros, int, int, Row
]  # due_at, id, ticket, row: unique by its ticket, so rows are never compared
FEW_STALE = 64


class DueHeap:
    """Entries of rows that left stay behind until they surface: a row's own ticket says which entry
    counts."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._stale = 0

    def push(self, row: Row, ticket: int) -> None:
        if self._stale > FEW_STALE and self._stale * 2 > len(self._entries):
            self._compact()
        row.ticket = ticket
        heappush(self._entries, (row.draft.due_at, row.draft.id.int, ticket, row))

    def forget(self, row: Row) -> None:
        row.ticket = 0
        self._stale += 1

    def first(self) -> Entry | None:
        entries = self._entries
        while entries:
            entry = entries[0]
            if entry[3].ticket == entry[2]:
                return entry
            heappop(entries)
            self._stale -= 1
        return None

    def drop_first(self) -> None:
        """To be called right after `first`: the entry it answered goes."""
        heappop(self._entries)[3].ticket = 0

    def first_after(self, moment: Micros) -> Micros | None:
        """Goes down the heap only below entries that are due already."""
        best: Micros | None = None
        open_positions = [0]
        while open_positions:
            position = open_positions.pop()
            if position >= len(self._entries):
                continue
            due_at, _, ticket, row = self._entries[position]
            if best is not None and due_at >= best:
                continue
            if due_at > moment and row.ticket == ticket:
                best = due_at
            else:
                open_positions += (2 * position + 1, 2 * position + 2)
        return best

    def in_order(self) -> Iterator[Row]:
        """Leaves them where they are. Costs as much as is read, not as much as there is."""
        heads = [(entry, 0) for entry in self._entries[:1]]
        while heads:
            (*_, ticket, row), position = heappop(heads)
            if row.ticket == ticket:
                yield row
            for child in range(2 * position + 1, min(2 * position + 3, len(self._entries))):
                heappush(heads, (self._entries[child], child))

    def _compact(self) -> None:
        self._entries = [entry for entry in self._entries if entry[3].ticket == entry[2]]
        heapify(self._entries)
        self._stale = 0

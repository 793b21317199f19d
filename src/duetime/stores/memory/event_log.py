"""The event log: the latest events, numbered."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice

from duetime.model.instant import Micros
from duetime.store import EVENTS_KEPT, EVENTS_KEPT_FOR


class MemoryEventLog:
    def __init__(self) -> None:
        self.last = 0
        self._kept: list[tuple[Micros, bytes]] = []  # the last of them has the number `last`

    def add(self, events: Sequence[bytes], now: Micros) -> None:
        self._kept += ((now, event) for event in events)
        self.last += len(events)
        # Now and then: a list gives up its beginning at the price of moving the rest.
        if len(self._kept) > EVENTS_KEPT + EVENTS_KEPT // 10:
            del self._kept[:-EVENTS_KEPT]

    def page(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        kept = self._kept[-EVENTS_KEPT:]
        first = self.last - len(kept) + 1
        start = max(0, after + 1 - first)
        return [(first + at, event) for at, (_, event) in islice(enumerate(kept), start, start + limit)]

    def forget(self, now: Micros) -> None:
        del self._kept[: bisect_right(self._kept, now - EVENTS_KEPT_FOR, key=lambda row: row[0])]

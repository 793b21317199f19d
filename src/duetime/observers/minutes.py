"""Roll-ups by the minute: what this process counted is kept in the store as small records, one for each minute and tenant.

A record is replaced every few seconds while its minute lasts. What a process that is killed had counted since the last time is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duetime.clock import Clock
from duetime.errors import StoreError
from duetime.model.codec import decode, encode
from duetime.model.histogram import Histogram
from duetime.model.instant import SECOND, Micros
from duetime.observers.errand import Errand
from duetime.observers.tally import FAILURES, Cell, Failing, Tally
from duetime.store import Store

KIND = "minute"
EVERY = 10 * SECOND
AFTER_FAILURE = 2 * SECOND
KEPT_FOR = 25 * 3_600 * SECOND
A_TENANT = SECOND // 20  # of the time: a thousand tenants are written once in 50 seconds, not every ten


class Minutes:
    def __init__(self, store: Store, clock: Clock, tally: Tally, instance: str) -> None:
        self._store = store
        self._clock = clock
        self._tally = tally
        self._instance = instance  # of this process: a node's id may change within a minute
        self._writing = Errand(self._write)

    def nudge(self) -> None:
        """Something was counted."""
        if self._tally.changed:
            self._writing.ask(max(EVERY, A_TENANT * len(self._tally.changed)))

    async def close(self) -> None:
        await self._writing.close()
        await self._write()
        await self._writing.close()

    async def _write(self) -> Micros | None:
        while self._tally.changed:
            minute, tenant = place = self._tally.changed.pop()
            cell = self._tally.minutes.get(minute, {}).get(tenant)
            if cell is None:
                continue
            try:
                expires_at = self._clock.now() + KEPT_FOR
                await self._store.put_record(KIND, tenant, f"{key_of(minute)}.{self._instance}", to_bytes(cell), None, expires_at)
            except StoreError:
                self._tally.changed.add(place)
                return AFTER_FAILURE
        return None


def key_of(minute: int) -> str:
    """As text it sorts like the number."""
    return f"{minute:010d}"


def minute_of(key: str) -> int:
    return int(key.partition(".")[0])


def to_bytes(cell: Cell) -> bytes:
    return encode(
        {
            "endings": cell.endings,
            "finished": cell.finished,
            "retried": cell.retried,
            "lateness": cell.lateness.to_json(),
            "duration": cell.duration.to_json(),
            "failing": {target: [one.count, one.error, one.sample] for target, one in cell.failing.items()},
        }
    )


def from_bytes(value: bytes) -> Cell:
    cell, read = Cell(), decode(value)
    cell.endings.update(read["endings"])
    cell.finished.update(read["finished"])
    cell.retried = read["retried"]
    cell.lateness = Histogram.from_json(read["lateness"])
    cell.duration = Histogram.from_json(read["duration"])
    cell.failing = {target: Failing(*one) for target, one in read["failing"].items()}
    return cell


def failed(endings: Mapping[str, Any]) -> int:
    return sum(endings.get(ending.value, 0) for ending in FAILURES)

"""Per-minute roll-ups: the store keeps what this process counted as small records, one for each minute and
tenant.

A record is replaced every few seconds during its minute. A process that is killed loses what it counted since
the last write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duetime.clock import Clock
from duetime.errors import StoreError
from duetime.model.codec import decode, encode
from duetime.model.histogram import Histogram
from duetime.model.instant import SECOND, Micros, minute_key
from duetime.observers.counters import FAILURES, AttemptCounts, ProcessCounters, TargetFailures
from duetime.observers.event_log import Debouncer
from duetime.store import Store

KIND = "minute"
WRITE_INTERVAL = 10 * SECOND
RETRY_INTERVAL = 2 * SECOND
KEEP = 25 * 3_600 * SECOND
INTERVAL_PER_TENANT = SECOND // 20  # a thousand tenants are written every 50 seconds, not every ten


class MinuteRollups:
    def __init__(self, store: Store, clock: Clock, counters: ProcessCounters, instance: str) -> None:
        self._store = store
        self._clock = clock
        self._counters = counters
        self._instance = instance  # of the process, because a node's id may change within a minute
        self._writing = Debouncer(self._write)

    def nudge(self) -> None:
        """Call it after an event was counted."""
        if self._counters.changed:
            self._writing.ask(max(WRITE_INTERVAL, INTERVAL_PER_TENANT * len(self._counters.changed)))

    async def close(self) -> None:
        await self._writing.close()
        await self._write()
        await self._writing.close()

    async def _write(self) -> Micros | None:
        while self._counters.changed:
            minute, tenant = place = self._counters.changed.pop()
            counts = self._counters.minutes_of(tenant).get(minute)
            if counts is None:
                continue
            try:
                expires_at = self._clock.now() + KEEP
                await self._store.put_record(
                    KIND, tenant, f"{minute_key(minute)}.{self._instance}", to_bytes(counts), None, expires_at
                )
            except StoreError:
                self._counters.changed.add(place)
                return RETRY_INTERVAL
        return None


def to_bytes(counts: AttemptCounts) -> bytes:
    return encode(
        {
            "endings": counts.endings,
            "finished": counts.finished,
            "retried": counts.retried,
            "lateness": counts.lateness.to_json(),
            "duration": counts.duration.to_json(),
            "failing": {target: [one.count, one.error, one.sample] for target, one in counts.failing.items()},
        }
    )


def from_bytes(value: bytes) -> AttemptCounts:
    counts, read = AttemptCounts(), decode(value)
    counts.endings.update(read["endings"])
    counts.finished.update(read["finished"])
    counts.retried = read["retried"]
    counts.lateness = Histogram.from_json(read["lateness"])
    counts.duration = Histogram.from_json(read["duration"])
    counts.failing = {target: TargetFailures(*one) for target, one in read["failing"].items()}
    return counts


def failed(endings: Mapping[str, Any]) -> int:
    return sum(endings.get(ending.value, 0) for ending in FAILURES)

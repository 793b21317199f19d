"""Queue depth over time, read from the samples that leaders have written."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from duetime.app.listing import records_after
from duetime.engine.node.registry import ALL_TENANTS
from duetime.engine.plan.queue_depth import KIND, MAX_INTERVAL
from duetime.model.codec import decode
from duetime.model.instant import MINUTE, Micros, minute_key, minute_of, to_datetime
from duetime.model.limit import MAX_QUEUES, QueueCounts
from duetime.model.views import QueueDepth, QueueDepths
from duetime.store import Store

HOLDS = MAX_INTERVAL + MINUTE  # a sample with jobs, if no other follows: then there is no leader
Sample = dict[str, list[int]]  # the counts by queue


async def read_depths(store: Store, since: Micros, step: Micros, now: Micros) -> QueueDepths:
    """For each step the last sample before its end, also one from before the step."""
    times = range((now - since) // step * step, now + 1, step)
    first = minute_key((times[0] - HOLDS) // MINUTE)
    records = [record async for record in records_after(store, KIND, ALL_TENANTS, first)]
    taken_at = [minute_of(record.key) * MINUTE for record in records]
    points: list[Sample | None] = []
    for at in times:
        last = bisect_left(taken_at, at + step) - 1
        sample: Sample | None = decode(records[last].value) if last >= 0 else None
        points.append(None if sample and taken_at[last] < at - HOLDS else sample)
    return QueueDepths(times=[to_datetime(at) for at in times], queues=_by_queue(points))


def _by_queue(points: list[Sample | None]) -> list[QueueDepth]:
    peaks: Counter[str] = Counter()
    for sample in points:
        for name, (pending, _, running) in (sample or {}).items():
            peaks[name] = max(peaks[name], pending + running)
    return [_depth(points, name) for name, _ in peaks.most_common(MAX_QUEUES)]


def _depth(points: list[Sample | None], name: str) -> QueueDepth:
    known = [None if sample is None else QueueCounts(*sample.get(name, ())) for sample in points]
    return QueueDepth(
        name=name,
        pending=[counts and counts.pending for counts in known],
        due=[counts and counts.due for counts in known],
        running=[counts and counts.running for counts in known],
    )

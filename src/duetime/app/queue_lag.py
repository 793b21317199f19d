"""How long the oldest due job of each queue has been waiting."""

from __future__ import annotations

from duetime.model.ids import EVERY_SEGMENT
from duetime.model.instant import Micros
from duetime.model.lease import NodeId
from duetime.model.limit import MAX_QUEUES, Queue, QueueFilter
from duetime.store import ClaimRequest, Lane, Store

MAX_LANES = 500
NO_NODE = NodeId(0)  # only a claim needs one


async def queue_lags(store: Store, now: Micros) -> dict[str, Micros]:
    """By queue. Paused queues, and those whose jobs all wait for a permit, wait because a user wants it:
    they are not listed. Two queries, however many jobs there are."""
    queues = await store.queues(wanted=QueueFilter(for_workers=True, limit=MAX_QUEUES))
    lags = {queue.name: 0 for queue in queues if queue.lanes and not queue.paused}
    lanes = tuple(lane for queue in queues if queue.name in lags for lane in _lanes(queue))[:MAX_LANES]
    if lanes:
        due = await store.due_jobs(ClaimRequest(NO_NODE, lanes, (), 1, 0, segments=EVERY_SEGMENT))
        for job in due.jobs:
            lags[job.queue] = max(lags[job.queue], now - job.due_at)
    return lags


def _lanes(queue: Queue) -> list[Lane]:
    return [Lane(queue.name, priority, 0, tenant) for priority, tenant in queue.lanes]

"""Why a job has not started: the first obstacle that can be read cheaply off the store."""

from __future__ import annotations

from duetime.app import App
from duetime.cli.records import iso
from duetime.model.instant import Micros
from duetime.model.job import Job, State
from duetime.model.lease import Node
from duetime.model.limit import Queue


async def waits_for(app: App, job: Job) -> str | None:
    """In words; None for a job that does not wait."""
    if job.state not in (State.PENDING, State.QUEUED):
        return None
    store = app.store
    queue = next((one for one in await store.queues() if one.name == job.queue), Queue(job.queue))
    running = next((one.running for one in await store.count_jobs() if one.queue == job.queue), 0)
    return obstacle(job, await store.time(), queue, running, await store.nodes())


def obstacle(job: Job, now: Micros, queue: Queue, running: int, nodes: list[Node]) -> str:
    """`running`: how many jobs of the queue run now."""
    if queue.paused:
        return f"queue {queue.name} is paused{f': {queue.pause_note}' if queue.pause_note else ''}"
    if job.due_at > now:
        return f"{'its next try' if job.failures else 'its time'}, {iso(job.due_at)}"
    if not any("worker" in node.roles and not node.dead and node.lease_until >= now for node in nodes):
        return "a worker: none is alive"
    if queue.most is not None and running >= queue.most:
        return f"room in queue {queue.name}: {running} run, {queue.most} may"
    if job.gate is not None:
        return f"its turn at gate {job.gate}, or a worker with room that knows {job.target} and serves queue {job.queue}"
    if job.overlap is not None:
        return f"the job of schedule {job.schedule} before it, or a worker with room that knows {job.target}"
    return f"a worker with room that knows {job.target} and serves queue {job.queue}"

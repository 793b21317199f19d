"""Pages of jobs by any mix of filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import Job, JobFilter, State
from duetime.store import Store


@dataclass(frozen=True, slots=True)
class JobQuery:
    """None means any."""

    state: State | None = None
    queue: str | None = None
    owner: str | None = None
    schedule: str | None = None  # its name
    worker: str | None = None  # a node's id or name
    label: tuple[str, str] | None = None  # a key, and the value it must have
    due_after: Micros | None = None
    due_before: Micros | None = None


class JobPage(NamedTuple):
    jobs: list[Job]
    next: tuple[Micros, UUID] | None  # where the next page begins; None: this is the last


async def page_of(store: Store, tenant: str, query: JobQuery, limit: int, before: tuple[Micros, UUID] | None) -> JobPage:
    nodes = await _nodes(store, query.worker)
    if nodes == []:
        return JobPage([], None)
    states = None if query.state is None else frozenset({query.state})
    node = None if nodes is None else nodes[-1]
    wanted = JobFilter(
        tenant,
        states,
        query.queue,
        query.owner,
        query.schedule,
        node=node,
        due_after=query.due_after,
        due_before=query.due_before,
        label=query.label,
    )
    found = await store.list_jobs(wanted, limit + 1, before)
    return JobPage(found[:limit], _position(found[limit - 1]) if len(found) > limit else None)


async def _nodes(store: Store, worker: str | None) -> list[int] | None:
    if worker is None:
        return None
    if worker.isascii() and worker.isdigit() and len(worker) < 19:
        return [int(worker)]
    return [node.id for node in await store.nodes() if node.name == worker]


def _position(job: Job) -> tuple[Micros, UUID]:
    return job.fire_time, job.id

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
    target: str | None = None  # a task's name, or "@http"
    error: str | None = None  # the line of its error that says what went wrong


class JobPage(NamedTuple):
    jobs: list[Job]
    next: tuple[Micros, UUID] | None  # where the next page begins; None: this is the last


async def page_of(store: Store, tenant: str, query: JobQuery, limit: int, before: tuple[Micros, UUID] | None) -> JobPage:
    nodes = await _nodes(store, query.worker)
    if nodes == []:
        return JobPage([], None)
    found = await store.list_jobs(filter_of(tenant, query, None if nodes is None else nodes[-1]), limit + 1, before)
    return JobPage(found[:limit], position(found[limit - 1]) if len(found) > limit else None)


def filter_of(tenant: str, query: JobQuery, node: int | None = None) -> JobFilter:
    return JobFilter(
        tenant,
        None if query.state is None else frozenset({query.state}),
        query.queue,
        query.owner,
        query.schedule,
        query.target,
        node,
        query.due_after,
        query.due_before,
        label=query.label,
        error=query.error,
    )


def position(job: Job) -> tuple[Micros, UUID]:
    """Where a listing goes on after this one."""
    return job.fire_time, job.id


async def _nodes(store: Store, worker: str | None) -> list[int] | None:
    if worker is None:
        return None
    if worker.isascii() and worker.isdigit() and len(worker) < 19:
        return [int(worker)]
    return [node.id for node in await store.nodes() if node.name == worker]

"""Queues, nodes, leases, tasks and statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query
from pydantic import Field
from starlette.responses import Response

from duetime.api.auth import Operator, Reader
from duetime.api.models.fleet import QueueLimitIn
from duetime.api.models.schedules import PauseIn
from duetime.api.paging import ClosedQuery
from duetime.api.routing import StrictRoute, answer, problems, with_body
from duetime.app.services import Services
from duetime.model.job import JobFilter, State
from duetime.model.limit import Queue, QueueCounts
from duetime.model.views import LeaseView, NodeView, Page, QueueView, Stats, TaskView

QueueName = Annotated[
    str,
    Path(min_length=1, max_length=128, json_schema_extra={"format": "duetime-name"}, examples=["billing"]),
]
NO_NOTE = PauseIn()
MAX_COUNT = 100_000  # of one tenant in one queue
# {name:path}: a proxy may decode %2F in a name. The word after the name is fixed, so the end of the name is
# known.
queues = APIRouter(prefix="/queues", tags=["queues"], route_class=StrictRoute)
router = APIRouter(route_class=StrictRoute)


class StatsQuery(ClosedQuery):
    since: Annotated[
        str,
        Field(
            description="How far back, up to 24h.",
            examples=["1h"],
            max_length=32,
            json_schema_extra={"format": "duetime-since"},
        ),
    ] = "1h"
    step: Annotated[
        str,
        Field(
            description="Whole minutes.",
            examples=["1m"],
            max_length=32,
            json_schema_extra={"format": "duetime-step"},
        ),
    ] = "1m"


@queues.get(
    "", response_model=Page[QueueView], summary="Queues with counts of their jobs", responses=problems()
)
async def list_queues(context: Reader) -> Response:
    view = context.view
    if context.is_operator:
        return answer(Page([QueueView.of(queue, queue.counts) for queue in await view.queues.counted()]))
    own = [queue for queue in await view.queues() if await _in_use(view, queue.name)]
    return answer(Page([QueueView.of(queue, await _own_counts(view, queue.name)) for queue in own]))


@queues.post("/{name:path}/pause", response_model=QueueView, summary="Pause a queue", responses=with_body())
async def pause(name: QueueName, context: Operator, body: Annotated[PauseIn, Body()] = NO_NOTE) -> Response:
    return await _queue_answer(context.view, await context.view.pause_queue(name, body.note or None))


@queues.post("/{name:path}/resume", response_model=QueueView, summary="Resume a queue", responses=problems())
async def resume(name: QueueName, context: Operator) -> Response:
    return await _queue_answer(context.view, await context.view.resume_queue(name))


@queues.post("/{name:path}/limit", response_model=QueueView, summary="Limit a queue", responses=with_body())
async def limit(name: QueueName, context: Operator, body: Annotated[QueueLimitIn, Body()]) -> Response:
    return await _queue_answer(
        context.view, await context.view.limit_queue(name, body.max_running, body.rate)
    )


@router.get(
    "/nodes",
    tags=["nodes"],
    response_model=Page[NodeView],
    summary="Nodes, living and recently dead",
    responses=problems(),
)
async def list_nodes(context: Reader) -> Response:
    now = await context.view.now()
    return answer(Page([NodeView.of(node, now) for node in await context.view.nodes()]))


@router.get(
    "/leases",
    tags=["nodes"],
    response_model=Page[LeaseView],
    summary="Leases and their holders",
    responses=problems(),
)
async def list_leases(context: Reader) -> Response:
    return answer(Page([LeaseView.of(lease) for lease in await context.view.nodes.leases()]))


@router.get(
    "/tasks",
    tags=["tasks"],
    response_model=Page[TaskView],
    operation_id="list_tasks",
    summary="Tasks that this process or a living node knows",
    responses=problems(),
)
async def list_tasks(context: Reader) -> Response:
    return answer(Page([TaskView(**task._asdict()) for task in await context.view.nodes.tasks()]))


@router.get(
    "/stats",
    tags=["stats"],
    response_model=Stats,
    summary="Counts, a series of the recent past, failing targets, late jobs and the next fires",
    responses=problems(),
)
async def stats(context: Reader, query: Annotated[StatsQuery, Query()]) -> Response:
    return answer(Stats.of(await context.view.stats(query.since, query.step)))


async def _in_use(view: Services, name: str) -> bool:
    """By this tenant: other tenants' queue names are not revealed."""
    return await view.store.count_jobs(JobFilter(view.tenant, queue=name), 1) > 0


async def _own_counts(view: Services, name: str) -> QueueCounts:
    """Jobs of this tenant only."""
    waiting = JobFilter(view.tenant, queue=name, states=frozenset({State.PENDING, State.QUEUED}))
    running = JobFilter(view.tenant, queue=name, states=frozenset({State.RUNNING}))
    due = replace(waiting, due_before=await view.now())
    counts = [await view.store.count_jobs(one, MAX_COUNT) for one in (waiting, due, running)]
    return QueueCounts(*counts)


async def _queue_answer(view: Services, queue: Queue) -> Response:
    counts = {one.name: one.counts for one in await view.queues.counted()}
    return answer(QueueView.of(queue, counts.get(queue.name)))

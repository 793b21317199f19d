"""Queues, nodes, leases, tasks and statistics."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query
from pydantic import Field
from starlette.responses import Response

from duetime.api.auth import Operator, Reader
from duetime.api.models.fleet import QueueLimitIn
from duetime.api.models.schedules import PauseIn
from duetime.api.paging import MAX_PAGE, ClosedQuery, PageQuery
from duetime.api.routing import StrictRoute, answer, problems, with_body
from duetime.app.services import Services
from duetime.model.limit import Queue, QueueFilter
from duetime.model.views import (
    BrokerView,
    LeaseView,
    NodeView,
    Page,
    QueueDepths,
    QueueView,
    Stats,
    TaskView,
)

QueueName = Annotated[
    str,
    Path(min_length=1, max_length=128, json_schema_extra={"format": "duetime-name"}, examples=["billing"]),
]
NO_NOTE = PauseIn()
# {name:path}: a proxy may decode %2F in a name. The word after the name is fixed, so the end of the name is
# known.
queues = APIRouter(prefix="/queues", tags=["queues"], route_class=StrictRoute)
router = APIRouter(route_class=StrictRoute)


class QueueListQuery(PageQuery):
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = MAX_PAGE


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
    "",
    response_model=Page[QueueView],
    operation_id="list_queues",
    summary="Queues with counts of their jobs",
    responses=problems(),
)
async def list_queues(context: Reader, query: Annotated[QueueListQuery, Query()]) -> Response:
    """A tenant sees the queues and jobs of its own: other tenants' queue names are not revealed."""
    listing = await context.listing("queues", query)
    tenant = None if context.is_operator else context.view.tenant
    wanted = QueueFilter(tenant=tenant, after=listing.after or "", limit=listing.limit + 1)
    page, cursor = listing.split(await context.view.queues.counted(wanted), lambda queue: queue.name)
    return answer(Page([QueueView.of(queue, queue.counts) for queue in page], cursor))


@queues.post(
    "/{name:path}/pause",
    response_model=QueueView,
    operation_id="pause_queue",
    summary="Pause a queue",
    responses=with_body(),
)
async def pause(name: QueueName, context: Operator, body: Annotated[PauseIn, Body()] = NO_NOTE) -> Response:
    return await _queue_answer(context.view, await context.view.pause_queue(name, body.note or None))


@queues.post(
    "/{name:path}/resume",
    response_model=QueueView,
    operation_id="resume_queue",
    summary="Resume a queue",
    responses=problems(),
)
async def resume(name: QueueName, context: Operator) -> Response:
    return await _queue_answer(context.view, await context.view.resume_queue(name))


@queues.post(
    "/{name:path}/limit",
    response_model=QueueView,
    operation_id="limit_queue",
    summary="Limit a queue",
    responses=with_body(),
)
async def limit(name: QueueName, context: Operator, body: Annotated[QueueLimitIn, Body()]) -> Response:
    return await _queue_answer(
        context.view, await context.view.limit_queue(name, body.max_running, body.rate)
    )


@router.get(
    "/nodes",
    tags=["nodes"],
    response_model=Page[NodeView],
    operation_id="list_nodes",
    summary="Nodes, living and recently dead",
    responses=problems(),
)
async def list_nodes(context: Reader) -> Response:
    """A tenant sees no brokers, no permissions, and no remote workers of other tenants."""
    nodes = context.view.nodes
    return answer(Page(await (nodes.views() if context.is_operator else nodes.of_tenant())))


@router.get(
    "/broker",
    tags=["nodes"],
    response_model=BrokerView,
    operation_id="read_broker",
    summary="The broker, whether it answers, and the messages in it",
    responses=problems(),
)
async def read_broker(context: Reader) -> Response:
    """As this process sees it: its address is null if the process has no `--queue`. Only for the operator's
    tenant."""
    context.require_operator("all tenants share the broker")
    return answer(await context.state.app.read_broker())


@router.get(
    "/leases",
    tags=["nodes"],
    response_model=Page[LeaseView],
    operation_id="list_leases",
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
    return answer(Page(await context.view.nodes.tasks()))


@router.get(
    "/stats",
    tags=["stats"],
    response_model=Stats,
    operation_id="read_stats",
    summary="Counts, a series of the recent past, failing targets, late jobs and the next fires",
    responses=problems(),
)
async def stats(context: Reader, query: Annotated[StatsQuery, Query()]) -> Response:
    return answer(await context.view.stats(query.since, query.step))


@router.get(
    "/stats/queues",
    tags=["stats"],
    response_model=QueueDepths,
    operation_id="read_queue_depth",
    summary="How many jobs the queues had in the recent past",
    responses=problems(),
)
async def queue_depth(context: Reader, query: Annotated[StatsQuery, Query()]) -> Response:
    """Only for the operator's tenant: other tenants' queue names are not revealed."""
    context.require_operator("the queues are those of all tenants")
    return answer(await context.view.queues.depth(query.since, query.step))


async def _queue_answer(view: Services, queue: Queue) -> Response:
    [stored] = await view.queues.counted(QueueFilter(name=queue.name))
    return answer(QueueView.of(queue, stored.counts))

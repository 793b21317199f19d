"""Queues: what waits in them, and holding them up."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Body, Path
from starlette.requests import Request
from starlette.responses import Response

from duetime.api import shown
from duetime.api.auth import Operator, Reader, at_home
from duetime.api.edge import edge_of
from duetime.api.models.fleet import QueueLimitIn, QueueOut, QueuesOut
from duetime.api.models.schedules import PauseIn
from duetime.api.routing import StrictRoute, answer, problems, with_body
from duetime.app.operations import Operations
from duetime.model.job import JobFilter, State
from duetime.model.limit import Queue
from duetime.store import QueueCount

Name = Annotated[str, Path(min_length=1, max_length=128, json_schema_extra={"format": "duetime-name"}, examples=["billing"])]
NO_NOTE = PauseIn()
MOST_COUNTED = 100_000  # of one tenant in one queue
# Of a name with slashes, too, where somebody in between has made a slash of %2F: what follows the name is known, so it has one end only.
router = APIRouter(prefix="/queues", tags=["queues"], route_class=StrictRoute)


@router.get("", response_model=QueuesOut, summary="Queues and what waits in them", responses=problems())
async def list_queues(request: Request, caller: Reader) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)
    if at_home(edge, caller):
        counts = {count.queue: count for count in await view.count_jobs()}
        items = [shown.queue(one, counts.get(one.name)) for one in await view.queues()]
    else:
        items = [shown.queue(one, await _own(view, one.name)) for one in await view.queues() if await _in_use(view, one.name)]
    return answer({"items": items, "next_cursor": None})


@router.post("/{name:path}/pause", response_model=QueueOut, summary="Start nothing more of it", responses=with_body())
async def pause(request: Request, name: Name, caller: Operator, body: Annotated[PauseIn, Body()] = NO_NOTE) -> Response:
    view = edge_of(request).view(caller)
    return await _shown(view, await view.pause_queue(name, body.note or None))


@router.post("/{name:path}/resume", response_model=QueueOut, summary="Start its jobs again", responses=problems())
async def resume(request: Request, name: Name, caller: Operator) -> Response:
    view = edge_of(request).view(caller)
    return await _shown(view, await view.resume_queue(name))


@router.post("/{name:path}/limit", response_model=QueueOut, summary="How much of it may run", responses=with_body())
async def limit(request: Request, name: Name, caller: Operator, body: Annotated[QueueLimitIn, Body()]) -> Response:
    view = edge_of(request).view(caller)
    return await _shown(view, await view.limit_queue(name, body.most, body.rate))


async def _in_use(view: Operations, name: str) -> bool:
    """By this tenant: the names others give their queues are theirs to tell."""
    return await view.store.count_matching(JobFilter(view.tenant, queue=name), 1) > 0


async def _own(view: Operations, name: str) -> QueueCount:
    """What waits and runs there of this tenant's alone."""
    waiting = JobFilter(view.tenant, queue=name, states=frozenset({State.PENDING, State.QUEUED}))
    running = JobFilter(view.tenant, queue=name, states=frozenset({State.RUNNING}))
    due = replace(waiting, due_before=await view.now())
    pending, late, busy = [await view.store.count_matching(one, MOST_COUNTED) for one in (waiting, due, running)]
    return QueueCount(name, pending, late, busy)


async def _shown(view: Operations, queue: Queue) -> Response:
    counts = {count.queue: count for count in await view.count_jobs()}
    return answer(shown.queue(queue, counts.get(queue.name)))

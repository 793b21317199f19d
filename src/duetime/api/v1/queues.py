"""Queues: what waits in them, and holding them up."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path
from starlette.requests import Request
from starlette.responses import Response

from duetime.api import shown
from duetime.api.auth import Manager, Reader
from duetime.api.edge import edge_of
from duetime.api.models.fleet import QueueOut, QueuesOut
from duetime.api.models.schedules import PauseIn
from duetime.api.routing import StrictRoute, answer, problems, with_body
from duetime.app.operations import Operations
from duetime.model.limit import Queue

Name = Annotated[str, Path(min_length=1, max_length=128, json_schema_extra={"format": "duetime-name"}, examples=["billing"])]
NO_NOTE = PauseIn()
router = APIRouter(prefix="/queues", tags=["queues"], route_class=StrictRoute)


@router.get("", response_model=QueuesOut, summary="Queues and what waits in them", responses=problems())
async def list_queues(request: Request, caller: Reader) -> Response:
    view = edge_of(request).view(caller)
    counts = {count.queue: count for count in await view.count_jobs()}
    return answer({"items": [shown.queue(one, counts.get(one.name)) for one in await view.queues()], "next_cursor": None})


@router.post("/{name}/pause", response_model=QueueOut, summary="Start nothing more of it", responses=with_body())
async def pause(request: Request, name: Name, caller: Manager, body: Annotated[PauseIn, Body()] = NO_NOTE) -> Response:
    view = edge_of(request).view(caller)
    return await _shown(view, await view.pause_queue(name, body.note or None))


@router.post("/{name}/resume", response_model=QueueOut, summary="Start its jobs again", responses=problems())
async def resume(request: Request, name: Name, caller: Manager) -> Response:
    view = edge_of(request).view(caller)
    return await _shown(view, await view.resume_queue(name))


async def _shown(view: Operations, queue: Queue) -> Response:
    counts = {count.queue: count for count in await view.count_jobs()}
    return answer(shown.queue(queue, counts.get(queue.name)))

"""Tasks: the names a job can be submitted under."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Reader
from duetime.api.edge import edge_of
from duetime.api.models.fields import Output
from duetime.api.routing import StrictRoute, answer, problems

router = APIRouter(tags=["tasks"], route_class=StrictRoute)


class TaskOut(Output):
    model_config = ConfigDict(title="Task")
    name: str
    queue: Annotated[str | None, Field(description="Where its jobs wait; null: its nodes have not said so yet.")]
    doc: Annotated[str | None, Field(description="The first line of what its author wrote.")]


class TasksOut(Output):
    model_config = ConfigDict(title="Tasks")
    items: list[TaskOut]


@router.get(
    "/tasks",
    response_model=TasksOut,
    operation_id="list_tasks",
    summary="Tasks that this process or a living node knows",
    responses=problems(),
)
async def list_tasks(request: Request, caller: Reader) -> Response:
    return answer({"items": [task._asdict() for task in await edge_of(request).view(caller).known_tasks()]})

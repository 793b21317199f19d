"""Tasks: the names a job can be submitted under."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Reader
from duetime.api.edge import edge_of
from duetime.api.models.fields import Output
from duetime.api.routing import StrictRoute, answer, problems
from duetime.app.operations import Operations
from duetime.engine.herald import profiles
from duetime.engine.terms import all_published
from duetime.task import Task

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
    view = edge_of(request).view(caller)
    known = {name: _shown(task) for name, task in view.tasks.items()}
    said = await all_published(view.store)
    elsewhere = {name: {"name": name, "queue": said[name].queue if name in said else None, "doc": None} for name in await _of_nodes(view)}
    merged = elsewhere | known
    return answer({"items": [merged[name] for name in sorted(merged)]})


async def _of_nodes(view: Operations) -> set[str]:
    now = await view.now()
    alive = {node.id for node in await view.nodes() if not node.dead and node.lease_until >= now}
    said = await profiles(view.store)
    return {name for node, profile in said.items() if node in alive for name in profile.targets if not name.startswith("@")}


def _shown(task: Task[..., Any]) -> dict[str, Any]:
    written = (task.__doc__ or "").strip().partition("\n")[0]
    return {"name": task.name, "queue": task.options.queue, "doc": written or None}

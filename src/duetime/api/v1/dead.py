"""Dead letters, grouped by what went wrong."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Manager, Reader
from duetime.api.edge import edge_of
from duetime.api.models.fields import OutId, OutInstant, Output
from duetime.api.routing import StrictRoute, answer, problems
from duetime.api.shown import iso
from duetime.api.v1.jobs import JobId
from duetime.model.instant import to_micros

router = APIRouter(tags=["dead letters"], route_class=StrictRoute)


class DeadGroupOut(Output):
    model_config = ConfigDict(title="DeadGroup")
    error: Annotated[str, Field(description="The line that says what went wrong; GET /jobs finds the jobs by it.")]
    target: Annotated[str, Field(examples=["invoice.send"])]
    count: int
    oldest: OutInstant
    newest: OutInstant
    sample: Annotated[OutId, Field(description="The newest of them.")]


class DeadGroupsOut(Output):
    model_config = ConfigDict(title="DeadGroups")
    items: Annotated[list[DeadGroupOut], Field(description="The largest first.")]
    complete: Annotated[bool, Field(description="False: there are older dead letters that were not counted.")]


@router.get(
    "/dead", response_model=DeadGroupsOut, operation_id="dead_groups", summary="Dead letters by what went wrong", responses=problems()
)
async def groups(request: Request, caller: Reader) -> Response:
    found = await edge_of(request).view(caller).dead_groups()
    items = [
        {
            "error": group.error,
            "target": group.target,
            "count": group.count,
            "oldest": iso(to_micros(group.oldest)),
            "newest": iso(to_micros(group.newest)),
            "sample": str(group.sample),
        }
        for group in found.groups
    ]
    return answer({"items": items, "complete": found.complete})


@router.post(
    "/jobs/{job_id:uuid}/discard",
    status_code=204,
    operation_id="discard_job",
    summary="Take a dead letter off the list; its record stays",
    responses=problems(404, 409),
)
async def discard(request: Request, job_id: JobId, caller: Manager) -> Response:
    await edge_of(request).view(caller).discard_job(job_id)
    return Response(status_code=204)

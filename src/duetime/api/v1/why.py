"""Why a job or schedule is as it is, in one sentence."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Reader
from duetime.api.edge import edge_of
from duetime.api.models.fields import OutInstant, Output
from duetime.api.routing import StrictRoute, answer, problems
from duetime.api.shown import iso
from duetime.api.v1.jobs import JobId
from duetime.api.v1.schedules import Reference
from duetime.app.why import Reason
from duetime.model.instant import to_micros

router = APIRouter(route_class=StrictRoute)


class WhyOut(Output):
    model_config = ConfigDict(title="Why")
    code: Annotated[str, Field(description="Stable: programs may rely on it.", examples=["queue_paused"])]
    why: Annotated[str, Field(examples=["waits: queue billing is paused since 09:12 UTC (database moves house)"])]
    since: OutInstant | None
    remedy: Annotated[str | None, Field(description="What can be done about it, if anything.", examples=["resume the queue"])]


@router.get(
    "/jobs/{job_id:uuid}/why",
    tags=["jobs"],
    response_model=WhyOut,
    operation_id="why_job",
    summary="Why a job is as it is",
    responses=problems(404),
)
async def why_job(request: Request, job_id: JobId, caller: Reader) -> Response:
    return _shown(await edge_of(request).view(caller).why_job(job_id))


@router.get(
    "/schedules/{schedule_id}/why",
    tags=["schedules"],
    response_model=WhyOut,
    operation_id="why_schedule",
    summary="When a schedule fires next, or why it does not",
    responses=problems(404),
)
async def why_schedule(request: Request, schedule_id: Reference, caller: Reader) -> Response:
    return _shown(await edge_of(request).view(caller).why_schedule(schedule_id))


def _shown(found: Reason) -> Response:
    since = None if found.since is None else iso(to_micros(found.since))
    return answer({"code": found.code, "why": found.why, "since": since, "remedy": found.remedy})

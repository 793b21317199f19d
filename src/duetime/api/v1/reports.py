"""Reports on attempts that were handed over: with the token of the attempt, whoever else may do what."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Caller, Submitter
from duetime.api.edge import edge_of
from duetime.api.models.jobs import CompleteIn, FailIn, HeartbeatIn, JobOut
from duetime.api.problems import Refused
from duetime.api.routing import StrictRoute, with_body
from duetime.api.v1.jobs import JobId, show
from duetime.app.reporting import Alive, Completed, Failed, Report
from duetime.model.signing import reported_attempt

router = APIRouter(prefix="/jobs", tags=["reports"], route_class=StrictRoute)


@router.post("/{job_id:uuid}/complete", response_model=JobOut, summary="The work is done", responses=with_body(404, 409))
async def complete(request: Request, job_id: JobId, body: Annotated[CompleteIn, Body()], caller: Submitter) -> Response:
    attempt = await _attempt(request, caller, job_id, body.token)
    return await _write(request, caller, job_id, Completed(attempt, body.result))


@router.post("/{job_id:uuid}/fail", response_model=JobOut, summary="The work failed", responses=with_body(404, 409))
async def fail(request: Request, job_id: JobId, body: Annotated[FailIn, Body()], caller: Submitter) -> Response:
    attempt = await _attempt(request, caller, job_id, body.token)
    return await _write(request, caller, job_id, Failed(attempt, body.error, body.retry))


@router.post("/{job_id:uuid}/heartbeat", response_model=JobOut, summary="The work goes on", responses=with_body(404, 409))
async def heartbeat(request: Request, job_id: JobId, body: Annotated[HeartbeatIn, Body()], caller: Submitter) -> Response:
    attempt = await _attempt(request, caller, job_id, body.token)
    progress = body.progress.model_dump(exclude_unset=True) if "progress" in body.model_fields_set else None
    return await _write(request, caller, job_id, Alive(attempt, progress, body.checkpoint))


async def _attempt(request: Request, caller: Caller, job_id: UUID, token: str) -> int:
    """The attempt the token speaks for. First the job: nobody learns by tokens what jobs other tenants have."""
    edge = edge_of(request)
    await edge.view(caller).read_job(job_id)
    attempt = reported_attempt(edge.ring, job_id, token)
    if attempt is None:
        raise Refused(403, "token_invalid", "token: is not one of this job: give back the Duetime-Report-Token of the call", "token")
    return attempt


async def _write(request: Request, caller: Caller, job_id: UUID, report: Report) -> Response:
    edge = edge_of(request)
    await edge.view(caller).report_job(job_id, report)
    return await show(edge, caller, job_id)

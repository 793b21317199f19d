"""Reports on attempts that were handed over. The token of the attempt is enough: whoever was called need not have a key."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Depends
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Caller, Scope, admitted, anyone_known
from duetime.api.edge import edge_of
from duetime.api.gates import CHALLENGE
from duetime.api.models.jobs import CompleteIn, FailIn, HeartbeatIn, JobOut
from duetime.api.problems import Refused
from duetime.api.routing import StrictRoute, with_body
from duetime.api.v1.jobs import JobId, show
from duetime.app.reporting import Alive, Completed, Failed, Report
from duetime.config import Settings
from duetime.engine.reaper import OUTSIDE
from duetime.invoker import Policies
from duetime.model.retry import Retry
from duetime.model.signing import Spoken, spoken_for

LARGEST_REPORT = 300_000  # a result of the greatest size, and the words around it


async def _holder(request: Request) -> Caller | None:
    """Who asks, where a gate can tell: a key that is shown must be a good one, and pages of other sites are kept out."""
    if edge_of(request).gate.local or "authorization" in request.headers:
        return await admitted(request, Scope.SUBMIT)
    return None


class ReportRoute(StrictRoute):
    look_at = staticmethod(_holder)
    largest_body = LARGEST_REPORT

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strangers(request: Request) -> Response:
            try:
                return await handle(request)
            except Refused as refused:
                if refused.status != 401:
                    await anyone_known(request)  # who has shown neither token nor key is unknown first, whatever else may be wrong
                raise

        return handle_strangers


Holder = Annotated[Caller | None, Depends(_holder)]
router = APIRouter(prefix="/jobs", tags=["reports"], route_class=ReportRoute)


@router.post("/{job_id:uuid}/complete", response_model=JobOut, summary="The work is done", responses=with_body(404, 409))
async def complete(request: Request, job_id: JobId, body: Annotated[CompleteIn, Body()], holder: Holder) -> Response:
    spoken = await _spoken(request, holder, job_id, body.token)
    return await _write(request, spoken, job_id, Completed(spoken.attempt, body.result))


@router.post("/{job_id:uuid}/fail", response_model=JobOut, summary="The work failed", responses=with_body(404, 409))
async def fail(request: Request, job_id: JobId, body: Annotated[FailIn, Body()], holder: Holder) -> Response:
    spoken = await _spoken(request, holder, job_id, body.token)
    return await _write(request, spoken, job_id, Failed(spoken.attempt, body.error, body.retry))


@router.post("/{job_id:uuid}/heartbeat", response_model=JobOut, summary="The work goes on", responses=with_body(404, 409))
async def heartbeat(request: Request, job_id: JobId, body: Annotated[HeartbeatIn, Body()], holder: Holder) -> Response:
    spoken = await _spoken(request, holder, job_id, body.token)
    progress = body.progress.model_dump(exclude_unset=True) if "progress" in body.model_fields_set else None
    return await _write(request, spoken, job_id, Alive(spoken.attempt, progress, body.checkpoint))


async def _spoken(request: Request, holder: Caller | None, job_id: UUID, token: str) -> Spoken:
    edge = edge_of(request)
    if holder is not None:
        await edge.view(holder).read_job(job_id)  # first: nobody learns by tokens what jobs other tenants have
    spoken = spoken_for(edge.ring, job_id, token)
    if spoken is None:
        why = "token: is not one of this job: give back the Duetime-Report-Token of the call"
        raise Refused(401, "token_invalid", why, "token", CHALLENGE) if holder is None else Refused(403, "token_invalid", why, "token")
    return spoken


async def _write(request: Request, spoken: Spoken, job_id: UUID, report: Report) -> Response:
    edge = edge_of(request)
    await edge.app.for_tenant(spoken.tenant).report_job(job_id, report, _policies(edge.settings))
    return await show(edge, Caller(spoken.tenant, frozenset({Scope.SUBMIT})), job_id)


def _policies(settings: Settings) -> Policies:
    """Of HTTP targets: no others are handed a token to report with."""
    return replace(OUTSIDE, retry=Retry(settings.retry_attempts, settings.retry_delay))

"""Reports of external workers on attempts that were handed over to them. The report token of the attempt is
enough; no key is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body, Depends
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import CHALLENGE, RequestContext, known_caller, require_scope
from duetime.api.bodies import MAX_KEYS
from duetime.api.models.jobs import MAX_OUTPUT_LINES, CompleteIn, FailIn, HeartbeatIn, ReportIn
from duetime.api.problems import ApiProblem
from duetime.api.routing import Handle, StrictRoute, with_body
from duetime.api.state import state_of
from duetime.api.v1.jobs import JobId, job_answer
from duetime.api.v1.output import output_texts
from duetime.app.reports import Alive, Completed, Failed, Report, ReportedOutput
from duetime.config import Settings
from duetime.engine.node.reaper import DEFAULT_POLICIES
from duetime.invoker import Policies
from duetime.model import duration
from duetime.model.api_key import Scope
from duetime.model.codec import token_in
from duetime.model.retry import Retry
from duetime.model.signing import ReportClaim, verify_report_token
from duetime.model.views import JobView

MAX_REPORT = 300_000  # the largest result, and the JSON around it
CLAIM = "report_claim"  # in the state of a request whose token is valid
NOT_A_TOKEN = "token: is not a token of this job: send the Duetime-Report-Token header of the call"


async def _optional_caller(request: Request) -> RequestContext | None:
    """The caller, if it has a key or in local mode. A wrong key is an error, and so are pages of other
    sites."""
    if state_of(request).authenticator.local or "authorization" in request.headers:
        return require_scope(await known_caller(request), Scope.SUBMIT)
    return None


class ReportRoute(StrictRoute):
    authenticate = staticmethod(_optional_caller)
    max_body = MAX_REPORT
    max_keys = MAX_KEYS + 3 * MAX_OUTPUT_LINES

    def get_route_handler(self) -> Handle:
        handle = super().get_route_handler()

        async def handle_unknown(request: Request) -> Response:
            try:
                return await handle(request)
            except ApiProblem as problem:
                if problem.status != 401 and not hasattr(request.state, CLAIM):
                    # Without token and key the answer is 401, whatever else is wrong.
                    await known_caller(request)
                raise

        return handle_unknown

    async def check_content(self, request: Request, data: bytes) -> None:
        """Without a key, the token is verified before the rest of the body is parsed."""
        if not hasattr(request.state, "context"):
            token = token_in(data)
            if token is None:
                await known_caller(request)  # raises: there is no key either
            claim = verify_report_token(state_of(request).ring, request.path_params["job_id"], token or "")
            if claim is None:
                raise ApiProblem(401, "token_invalid", NOT_A_TOKEN, "token", CHALLENGE)
            setattr(request.state, CLAIM, claim)


OptionalCaller = Annotated[RequestContext | None, Depends(_optional_caller)]
router = APIRouter(prefix="/jobs", tags=["reports"], route_class=ReportRoute)


@router.post(
    "/{job_id:uuid}/complete",
    response_model=JobView,
    operation_id="complete_job",
    summary="Report success",
    responses=with_body(404, 409),
)
async def complete(
    request: Request, job_id: JobId, body: Annotated[CompleteIn, Body()], context: OptionalCaller
) -> Response:
    token = await _verified(request, context, job_id, body.token)
    return await _write(request, token, job_id, Completed(token.attempt, body.result), body)


@router.post(
    "/{job_id:uuid}/fail",
    response_model=JobView,
    operation_id="fail_job",
    summary="Report a failure",
    responses=with_body(404, 409),
)
async def fail(
    request: Request, job_id: JobId, body: Annotated[FailIn, Body()], context: OptionalCaller
) -> Response:
    token = await _verified(request, context, job_id, body.token)
    return await _write(request, token, job_id, Failed(token.attempt, body.error, body.retry), body)


@router.post(
    "/{job_id:uuid}/heartbeat",
    response_model=JobView,
    operation_id="heartbeat_job",
    summary="Report that the work continues",
    responses=with_body(404, 409),
)
async def heartbeat(
    request: Request, job_id: JobId, body: Annotated[HeartbeatIn, Body()], context: OptionalCaller
) -> Response:
    token = await _verified(request, context, job_id, body.token)
    progress = body.progress.model_dump(exclude_unset=True) if "progress" in body.model_fields_set else None
    return await _write(request, token, job_id, Alive(token.attempt, progress, body.checkpoint), body)


async def _verified(request: Request, context: RequestContext | None, job_id: UUID, text: str) -> ReportClaim:
    if context is None:
        claim: ReportClaim = getattr(request.state, CLAIM)
        return claim
    await context.view.read_job(job_id)  # first: a token must not reveal jobs of other tenants
    token = verify_report_token(state_of(request).ring, job_id, text)
    if token is None:
        raise ApiProblem(403, "token_invalid", NOT_A_TOKEN, "token")
    return token


async def _write(
    request: Request, token: ReportClaim, job_id: UUID, report: Report, body: ReportIn
) -> Response:
    state = state_of(request)
    view = state.app.for_tenant(token.tenant)
    keep = duration.parse(state.settings.output_retention, "output_retention")
    output = ReportedOutput(output_texts(body.output), keep)
    await view.jobs.report(job_id, report, _policies(state.settings), output)
    return await job_answer(view, job_id)


def _policies(settings: Settings) -> Policies:
    """Of HTTP targets: only they get report tokens."""
    return replace(DEFAULT_POLICIES, retry=Retry(settings.retry_attempts, settings.retry_delay))

"""POST /jobs. This route authenticates, parses and answers itself: FastAPI's own steps would take as long as
all the rest."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from duetime.api.auth import RequestContext, Submitter, auth_request_of, authenticate, require_scope
from duetime.api.bodies import MAX_BODY, check_headers, check_type, gather, parse, validated
from duetime.api.caller import HAS_KEY, AuthRequest
from duetime.api.models.jobs import NewJobIn
from duetime.api.problems import ApiProblem, problem_of, respond
from duetime.api.requests import new_job
from duetime.api.routing import (
    ONCE,
    PREFIX,
    Handle,
    StrictRoute,
    address_problem,
    answer,
    links,
    location,
    with_body,
)
from duetime.api.state import ServiceState, state_of
from duetime.app.services import Services
from duetime.errors import DuetimeError
from duetime.model.api_key import Scope as KeyScope
from duetime.model.views import Submitted

PATH = f"{PREFIX}/jobs"
NEW_JOB: TypeAdapter[NewJobIn] = TypeAdapter(NewJobIn)
LOCATION = location("The address of the job.")
OPERATIONS = ("read", "change", "cancel", "run", "retry", "discard", "why")


async def submit(body: Annotated[NewJobIn, Body()], context: Submitter) -> Response:
    return await context.once(lambda view: _store(context, view, body), body)


async def _store(context: RequestContext, view: Services, body: NewJobIn) -> Response:
    done = await view.jobs.submit_request(new_job(context, body))
    known = None if done.conflict is None or done.conflict == "replaced" else await view.read_job(done.id)
    warning = await view.context.task_warning(done.draft.target, done.draft.target_spec)
    submitted = Submitted.of(done.id, done.draft, known, done.conflict, warning)
    return answer(submitted, 201 if known is None else 200, {"Location": f"{PATH}/{done.id}"})


class SubmitRoute(StrictRoute):
    """Calls `submit` without FastAPI's dependency resolution."""

    def get_route_handler(self) -> Handle:
        async def handle(request: Request) -> Response:
            return await respond_to(
                state_of(request), auth_request_of(request), request.scope, request.receive
            )

        return handle


def submit_route() -> SubmitRoute:
    return SubmitRoute(
        PATH,
        submit,
        methods=["POST"],
        status_code=201,
        tags=["jobs"],
        response_model=Submitted,
        operation_id="submit_job",
        summary="Submit a job",
        responses={
            201: {
                "headers": LOCATION,
                "description": "Stored, durably.",
                "links": links("job", "job_id", "id", *OPERATIONS),
            },
            200: {
                "headers": LOCATION,
                "model": Submitted,
                "description": "A job with this unique key exists.",
            },
            **with_body(409),
        },
        openapi_extra=ONCE,
    )


ROUTE = submit_route()


class DirectSubmit:
    """The same route as an ASGI application. The service calls it before its router."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The first of several headers of a name counts, as in all routes.
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])
        }
        client = scope.get("client")
        try:
            response = await respond_to(
                self._state, AuthRequest("POST", headers, client[0] if client else None), scope, receive
            )
        except (ApiProblem, DuetimeError) as error:
            response = respond(problem_of(error), scope["state"]["request_id"])
        await response(scope, receive, send)


async def respond_to(state: ServiceState, request: AuthRequest, scope: Scope, receive: Receive) -> Response:
    context = require_scope(await authenticate(state, request, PATH), KeyScope.SUBMIT)
    scope["state"][HAS_KEY] = context.caller.key_prefix is not None
    if (problem := address_problem(scope, takes_query=False)) is not None:
        raise problem
    check_headers(request.headers, MAX_BODY)
    data = await gather(receive, MAX_BODY)
    check_type(request.headers.get("content-type"))
    return await submit(validated(NEW_JOB, parse(data)), context)

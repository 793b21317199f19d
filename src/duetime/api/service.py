"""The service: routes, authentication and documentation around an app."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, compile_path
from starlette.types import Message, Receive, Scope, Send

from duetime.api import demo, health, metrics, ui
from duetime.api.auth import KeyAuthenticator, LocalAuthenticator, known_caller
from duetime.api.caller import Authenticator, RateLimit
from duetime.api.compat import agents
from duetime.api.compat import jobs as plain_jobs
from duetime.api.local_mode import require_local_url
from duetime.api.middleware import RequestMiddleware
from duetime.api.openapi import DocumentedService, described, document, page
from duetime.api.paging import Cursors
from duetime.api.problems import ApiProblem, invalid, problem_of, respond
from duetime.api.rate_limit import KeyRateLimit, SharedBuckets, Unlimited
from duetime.api.routing import PREFIX, path_of
from duetime.api.state import ServiceState
from duetime.api.tracing import is_traced, traced
from duetime.api.v1 import (
    alerts,
    bulk,
    calendar,
    events,
    fast_submit,
    fleet,
    jobs,
    keys,
    output,
    plans,
    reports,
    schedules,
    targets,
    work,
)
from duetime.app import App
from duetime.config import Settings
from duetime.engine.submit.validate import check_id
from duetime.errors import DuetimeError, JobNotFound
from duetime.model.keyring import KeyRing
from duetime.version import VERSION

ROUTERS = (
    jobs.batches,
    bulk.router,
    jobs.router,
    output.router,
    jobs.dead_letters,
    plans.router,
    schedules.router,
    calendar.router,
    fleet.queues,
    fleet.router,
    keys.router,
    alerts.router,
    work.router,
    targets.router,
    events.router,
)
JOBS = f"{PREFIX}/jobs/"
# FastAPI's own spans would contain the queries of URLs, and trace each request twice.
NO_TELEMETRY = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
OTHER_PAGES = ("/", "/docs", "/openapi.json", "/ui")


class Service(DocumentedService):
    """FastAPI. Requests of POST /jobs go directly to their route, because FastAPI's own steps take as long as
    all the rest."""

    def __init__(self, state: ServiceState, **options: Any) -> None:
        super().__init__(**options)
        self.state.service = state
        self._submit = RequestMiddleware(fast_submit.DirectSubmit(state), state.meter)
        self._direct = (fast_submit.PATH, "POST") if "api" in state.settings.roles else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state: ServiceState = self.state.service
        if state.stopping:
            send = _closing(send)
        tracer = state.app.tracer
        if tracer is not None and is_traced(scope):
            await traced(self._answer, tracer, scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (scope["path"], scope["method"]) == self._direct:
            scope["route"] = fast_submit.ROUTE
            await self._submit(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def prepare(self) -> None:
        """Build all routes now: FastAPI builds them at the first request, which would block the event
        loop."""
        nowhere = {"type": "http", "method": "GET", "path": "", "root_path": "", "headers": []}
        for route in self.router.routes:
            route.matches(nowhere)

    def document_routes(self) -> list[BaseRoute]:
        other = FastAPI()
        _add_routes(other, self.state.service, documents=True)
        return other.routes

    def leave(self) -> None:
        """Report that the service is not ready, and end each connection with its next answer. Requests are
        answered as before: a proxy needs some time to send them elsewhere."""
        self.state.service.stopping = True

    def stop(self) -> None:
        """As `leave`, and end event streams and answer held requests."""
        self.leave()
        state: ServiceState = self.state.service
        state.long_polls.stop()
        state.app.event_feed.close_all()


def build(
    app: App,
    settings: Settings,
    *,
    authenticator: Authenticator | None = None,
    rate_limit: RateLimit | None = None,
    ring: KeyRing | None = None,
) -> Service:
    """The ASGI application. The app must be open while it serves. A node without the role `api` answers only
    health checks and /metrics."""
    state = build_state(app, settings, authenticator, rate_limit, ring or KeyRing())
    service = Service(
        state,
        title="Duetime",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry=NO_TELEMETRY,
        redirect_slashes=False,  # the redirect would name the Host of the request, and http behind a proxy
    )
    _add_routes(service, state)
    # FastAPI's own way to have another.
    service.openapi = lambda: document(service)  # type: ignore[method-assign]
    for kind in (DuetimeError, ApiProblem, RequestValidationError, HTTPException):
        service.add_exception_handler(kind, _respond)
    service.add_middleware(RequestMiddleware, meter=state.meter)
    return service


def _add_routes(service: FastAPI, state: ServiceState, documents: bool = False) -> None:
    service.include_router(health.router)
    service.include_router(metrics.router)
    if "api" in state.settings.roles:
        _add_api(service, state, documents)


def _add_api(service: FastAPI, state: ServiceState, documents: bool) -> None:
    service.router.routes.append(fast_submit.submit_route() if documents else fast_submit.ROUTE)
    service.router.routes.extend(_api_routes(documents))
    if state.authenticator.local:
        service.include_router(demo.router)
    service.add_api_route("/docs", _docs, include_in_schema=False)
    service.add_api_route("/openapi.json", _openapi, include_in_schema=False)
    service.include_router(ui.router(ui.Files()))


@cache
def _api_routes(documents: bool) -> list[BaseRoute]:
    """The same for all services of a process: FastAPI takes a tenth of a second to build them. For the
    document they are built apart, with the models of responses."""
    shared = APIRouter()
    # One by one: FastAPI would build every route of a router of routers twice.
    for router in ROUTERS:
        shared.include_router(router, prefix=PREFIX, dependencies=[Depends(known_caller)])
    shared.include_router(reports.router, prefix=PREFIX)
    for router in (agents.router, plain_jobs.router):
        shared.include_router(router, dependencies=[Depends(known_caller)])
    return shared.routes


def build_state(
    app: App,
    settings: Settings,
    authenticator: Authenticator | None,
    rate_limit: RateLimit | None,
    ring: KeyRing,
) -> ServiceState:
    if authenticator is None:
        if not settings.keys:
            require_local_url(settings.public_url)
        keys_needed = KeyAuthenticator(app, settings.trusted_proxies()) if settings.keys else None
        authenticator = keys_needed or LocalAuthenticator()
    if rate_limit is None:
        rate_limit = (
            KeyRateLimit(settings.usual_rate(), SharedBuckets(app, "rate")) if settings.keys else Unlimited()
        )
    if ring.keys:
        app.use_secret_keys(ring)
    return ServiceState(app, authenticator, rate_limit, Cursors(_cursor_key(ring)), ring, settings)


def _cursor_key(ring: KeyRing) -> bytes | None:
    """The same in every process of a fleet. None without a secret key: the store then holds a random one."""
    return None if ring.current is None else ring.current.derive("cursor")


def _closing(send: Send) -> Send:
    """The client, or a proxy, opens another connection for its next request, to a process that stays."""

    async def send_last(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"connection", b"close")]
        await send(message)

    return send_last


# -- errors
async def _respond(request: Request, error: Exception) -> Response:
    match error:
        case HTTPException():
            problem = await _http_problem(request, error.status_code)
        case RequestValidationError():
            problem = invalid(list(error.errors()), skip=1)
        case _:
            problem = problem_of(error)
    return respond(problem, request.state.request_id)


async def _http_problem(request: Request, status: int) -> ApiProblem:
    if status == 405:
        methods = ", ".join(sorted(_methods(request, (await described(request.app))["paths"])))
        detail = f"{request.method} is not a method of this address: use {methods}"
        return ApiProblem(405, "method_not_allowed", detail, None, {"Allow": methods})
    if status == 404:
        return _unknown(path_of(request.scope))
    return ApiProblem(status, "refused", "the request cannot be served")


def _unknown(path: str) -> ApiProblem:
    if path.startswith(JOBS):
        try:
            check_id(path.removeprefix(JOBS).partition("/")[0])
        except JobNotFound as problem:  # more likely a mistyped id than an unknown route
            return problem_of(problem)
    return ApiProblem(404, "not_found", "unknown address: /docs lists the routes")


def _methods(request: Request, known: dict[str, Any]) -> set[str]:
    """All methods of this path: Starlette names those of the first route only."""
    path = request.url.path
    with_head = path in (health.ALIVE, health.READY) or path.startswith("/ui/")
    found = {"GET", "HEAD"} if with_head else {"GET"} if path in OTHER_PAGES else set()
    for template, operations in ({path: known[path]} if path in known else known).items():
        pattern = compile_path(
            template.replace("{job_id}", "{job_id:uuid}").replace("{name}", "{name:path}")
        )[0]
        if pattern.match(path_of(request.scope)):
            found |= {method.upper() for method in operations}
    return found


async def _docs(request: Request) -> Response:
    return page(await described(request.app))


async def _openapi(request: Request) -> Response:
    return JSONResponse(await described(request.app))

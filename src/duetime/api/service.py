"""The service: routes, guards and documentation put together around an app."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from duetime.api import health
from duetime.api.auth import Gate, LocalGate, anyone_known
from duetime.api.docs import page
from duetime.api.edge import Edge
from duetime.api.idempotency import Memory
from duetime.api.limits import RateLimit, Unlimited
from duetime.api.middleware import Border
from duetime.api.openapi import document
from duetime.api.paging import Cursors
from duetime.api.problems import Refused, invalid, refusal_of, respond
from duetime.api.v1 import jobs, nodes, queues, reports, schedules
from duetime.api.v1.submitting import PATH, Submitting
from duetime.app import App
from duetime.config import Settings
from duetime.errors import DuetimeError
from duetime.model.keyring import KeyRing
from duetime.version import VERSION

PREFIX = "/api/v1"
OTHER_PAGES = ("/", "/docs", "/openapi.json")


class Service(FastAPI):
    """FastAPI, except for the one route that must be quick: its own steps would take as long as all the rest."""

    def __init__(self, edge: Edge, **options: Any) -> None:
        super().__init__(**options)
        self.state.edge = edge
        self._submitting = Border(Submitting(edge))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH and scope["method"] == "POST":
            await self._submitting(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def build(
    app: App, settings: Settings, *, gate: Gate | None = None, rate_limit: RateLimit | None = None, ring: KeyRing | None = None
) -> FastAPI:
    """The ASGI application. The app must be open while it serves."""
    edge = make_edge(app, settings, gate or LocalGate(), rate_limit or Unlimited(), ring or KeyRing())
    service = Service(edge, title="Duetime", version=VERSION, docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    service.include_router(_v1())
    service.include_router(health.router)
    service.add_api_route("/docs", _docs, include_in_schema=False)
    service.add_api_route("/", _front, include_in_schema=False)
    service.openapi = lambda: document(service)  # type: ignore[method-assign]  # FastAPI's own way to have another
    for kind, handler in ((DuetimeError, _domain), (Refused, _refused), (RequestValidationError, _invalid), (HTTPException, _http)):
        service.add_exception_handler(kind, handler)
    service.add_middleware(Border)
    return service


def make_edge(app: App, settings: Settings, gate: Gate, rate_limit: RateLimit, ring: KeyRing) -> Edge:
    return Edge(app, gate, rate_limit, Cursors(_cursor_key(settings, ring)), Memory(app.store), ring, _sealer(ring))


def _v1() -> APIRouter:
    made = APIRouter(prefix=PREFIX, dependencies=[Depends(anyone_known)])
    for router in (jobs.batches, jobs.router, reports.router, schedules.router, queues.router, nodes.router):
        made.include_router(router)
    return made


def _cursor_key(settings: Settings, ring: KeyRing) -> bytes:
    """The same in every process of a fleet. Without a key of the service a cursor is bound to its filter, but could be forged: it says only
    where to go on within what its holder may read anyway."""
    if ring.current is not None:
        return ring.current.derive("cursor")
    return hmac.digest(b"duetime/cursor", settings.store.encode(), sha256)


def _sealer(ring: KeyRing) -> Any:
    if ring.current is None:
        return None
    from duetime.invokers.http.secrets import SecretBox

    box = SecretBox(ring)
    return lambda tenant: lambda name, text: box.seal(tenant, name, text)


# -- what goes wrong ------------------------------------------------------------------------------------------------------
async def _domain(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, DuetimeError)
    refused = refusal_of(problem)
    if refused.status == 500:
        raise problem
    return respond(refused, request.state.request_id)


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Refused)
    return respond(problem, request.state.request_id)


async def _invalid(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    return respond(invalid(list(problem.errors()), skip=1), request.state.request_id)


async def _http(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    if problem.status_code == 405:
        methods = sorted(_methods(request))
        detail = f"{request.method} is no method of this address: use {', '.join(methods)}"
        return respond(Refused(405, "method_not_allowed", detail, None, {"Allow": ", ".join(methods)}), request.state.request_id)
    if problem.status_code == 404:
        return respond(Refused(404, "not_found", "there is nothing at this address: /docs lists the routes"), request.state.request_id)
    return respond(Refused(problem.status_code, "refused", "the request cannot be served"), request.state.request_id)


def _methods(request: Request) -> set[str]:
    """All methods of this path: Starlette itself names those of the first route only."""
    found = {"GET"} if request.url.path in OTHER_PAGES else set()
    for path, operations in request.app.openapi()["paths"].items():
        pattern = compile_path(path.replace("{job_id}", "{job_id:uuid}"))[0]
        if pattern.match(request.url.path):
            found |= {method.upper() for method in operations}
    return found


async def _docs(request: Request) -> Response:
    return page(request.app.openapi())


async def _front() -> Response:
    return RedirectResponse("/docs")

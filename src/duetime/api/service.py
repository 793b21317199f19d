"""The service: routes, guards and documentation put together around an app."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from duetime.api import demo, health, metrics, ui
from duetime.api.auth import Gate, anyone_known
from duetime.api.compat.routes import include_compatible
from duetime.api.docs import page
from duetime.api.edge import Edge
from duetime.api.gates import KeyGate, LocalGate
from duetime.api.idempotency import Memory
from duetime.api.limits import RateLimit, Unlimited
from duetime.api.middleware import Border
from duetime.api.openapi import described, document
from duetime.api.paging import Cursors
from duetime.api.problems import Refused, invalid, refusal_of, respond
from duetime.api.rates import KeyRates
from duetime.api.routing import told_path
from duetime.api.v1 import (
    bulk,
    calendar,
    dead,
    events,
    jobs,
    keys,
    me,
    nodes,
    plans,
    preview,
    queues,
    reports,
    schedules,
    stats,
    targets,
    tasks,
    versions,
    why,
)
from duetime.api.v1.submitting import PATH, Submitting
from duetime.app import App
from duetime.config import Settings
from duetime.errors import DuetimeError
from duetime.model.keyring import KeyRing
from duetime.version import VERSION

PREFIX = "/api/v1"
# In this order: /jobs/bulk must come before /jobs/{id}.
ROUTERS = (
    jobs.batches,
    bulk.router,
    jobs.router,
    schedules.router,
    plans.router,
    preview.router,
    versions.router,
    queues.router,
    nodes.router,
    keys.router,
    me.router,
    targets.router,
    tasks.router,
    stats.router,
    events.router,
    why.router,
    dead.router,
    calendar.router,
)
OTHER_PAGES = ("/", "/docs", "/openapi.json", "/ui")


class Service(FastAPI):
    """FastAPI, except for the one route that must be quick: its own steps would take as long as all the rest."""

    def __init__(self, edge: Edge, **options: Any) -> None:
        super().__init__(**options)
        self.state.edge = edge
        self._submitting = Border(Submitting(edge), edge.meter, PATH)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH and scope["method"] == "POST":
            await self._submitting(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def prepare(self) -> None:
        """Work out every route now: FastAPI puts that off until somebody asks for one, and the loop would stand still meanwhile."""
        nowhere = {"type": "http", "method": "GET", "path": "", "root_path": "", "headers": []}
        for route in self.router.routes:
            route.matches(nowhere)

    def stop(self) -> None:
        """Whoever asks is told that the service is not ready any more; streams end, and those who wait for a job are answered."""
        self.state.edge.stopping = True
        self.state.edge.held.stop()
        self.state.edge.app.audience.dismiss()


def build(
    app: App, settings: Settings, *, gate: Gate | None = None, rate_limit: RateLimit | None = None, ring: KeyRing | None = None
) -> Service:
    """The ASGI application. The app must be open while it serves."""
    edge = make_edge(app, settings, gate or _gate(app, settings), rate_limit or _rates(settings), ring or KeyRing())
    service = Service(edge, title="Duetime", version=VERSION, docs_url=None, redoc_url=None, openapi_url=None)
    _include_v1(service)
    service.include_router(reports.router, prefix=PREFIX)
    service.include_router(health.router)
    service.include_router(metrics.router)
    include_compatible(service)
    if edge.gate.local:
        service.include_router(demo.router)
    service.add_api_route("/docs", _docs, include_in_schema=False)
    service.add_api_route("/openapi.json", _openapi, include_in_schema=False)
    service.include_router(ui.router(ui.Files()))
    service.openapi = lambda: document(service)  # type: ignore[method-assign]  # FastAPI's own way to have another
    for kind, handler in ((DuetimeError, _domain), (Refused, _refused), (RequestValidationError, _invalid), (HTTPException, _http)):
        service.add_exception_handler(kind, handler)
    service.add_middleware(Border, meter=edge.meter)
    return service


def make_edge(app: App, settings: Settings, gate: Gate, rate_limit: RateLimit, ring: KeyRing) -> Edge:
    return Edge(app, gate, rate_limit, Cursors(_cursor_key(settings, ring)), Memory(app.store), ring, _sealer(ring), settings)


def _gate(app: App, settings: Settings) -> Gate:
    return KeyGate(app, settings.trusted_proxies()) if settings.keys else LocalGate(settings.public_url)


def _rates(settings: Settings) -> RateLimit:
    return KeyRates(settings.usual_rate()) if settings.keys else Unlimited()


def _include_v1(service: FastAPI) -> None:
    """One by one: of a router of routers FastAPI works out every route twice, once to see that it has a path and once to serve it."""
    for router in ROUTERS:
        service.include_router(router, prefix=PREFIX, dependencies=[Depends(anyone_known)])


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
        methods = sorted(_methods(request, (await described(request.app))["paths"]))
        detail = f"{request.method} is no method of this address: use {', '.join(methods)}"
        return respond(Refused(405, "method_not_allowed", detail, None, {"Allow": ", ".join(methods)}), request.state.request_id)
    if problem.status_code == 404:
        return respond(Refused(404, "not_found", "there is nothing at this address: /docs lists the routes"), request.state.request_id)
    return respond(Refused(problem.status_code, "refused", "the request cannot be served"), request.state.request_id)


def _methods(request: Request, known: dict[str, Any]) -> set[str]:
    """All methods of this path: Starlette itself names those of the first route only."""
    found = {"GET"} if request.url.path in OTHER_PAGES else {"GET", "HEAD"} if request.url.path.startswith("/ui/") else set()
    exact = {request.url.path: known[request.url.path]} if request.url.path in known else known
    for path, operations in exact.items():
        pattern = compile_path(path.replace("{job_id}", "{job_id:uuid}").replace("{name}", "{name:path}"))[0]
        if pattern.match(told_path(request.scope)):
            found |= {method.upper() for method in operations}
    return found


async def _docs(request: Request) -> Response:
    return page(await described(request.app))


async def _openapi(request: Request) -> Response:
    return JSONResponse(await described(request.app))

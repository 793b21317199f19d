"""The HTTP service: routes, errors, headers and the page, around one open `Momentum`."""

from __future__ import annotations

from fastapi import Depends, FastAPI

from momentum import __version__
from momentum.api import problems
from momentum.api.auth import authenticate
from momentum.api.middleware import RequestMiddleware
from momentum.api.models.fields import ProblemDocument
from momentum.api.page import PageFiles, page_router
from momentum.api.routes import accounts, lists, media, posts, status
from momentum.api.state import ServiceState
from momentum.application import Momentum

BASE = "/api/v1"
ERRORS: dict[int | str, dict[str, object]] = {
    "4XX": {"model": ProblemDocument, "description": "A problem (RFC 9457)"}
}


def build(momentum: Momentum, files: PageFiles | None = None) -> FastAPI:
    service = FastAPI(
        title="Momentum",
        version=__version__,
        summary="Posts published to LinkedIn on time.",
        openapi_url=f"{BASE}/openapi.json",
        docs_url=None,
        redoc_url=None,
        # Its spans would contain the codes in the addresses of callbacks.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    service.state.service = ServiceState(momentum)
    known_caller = [Depends(authenticate)]
    for router in (status.router, accounts.router, media.router, posts.router, lists.router):
        service.include_router(router, prefix=BASE, dependencies=known_caller, responses=ERRORS)
    for router in (status.session_router, accounts.callback_router):
        service.include_router(router, prefix=BASE, responses=ERRORS)
    service.include_router(page_router(files or PageFiles()))
    problems.add_handlers(service)
    service.add_middleware(RequestMiddleware)
    return service

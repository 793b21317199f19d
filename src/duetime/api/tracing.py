"""The spans of API requests. Health checks, metrics and pages have none."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duetime.tracing import Tracer

TRACED = ("/api/", "/jobs")
SERVER_ERROR = 500


def is_traced(scope: Scope) -> bool:
    return scope["type"] == "http" and str(scope["path"]).startswith(TRACED)


async def traced(inner: ASGIApp, tracer: Tracer, scope: Scope, receive: Receive, send: Send) -> None:
    method, parent = scope["method"], None
    for name, value in scope["headers"]:
        if name == b"traceparent":
            parent = value.decode("latin-1")
    attributes = {"http.request.method": method, "url.path": scope["path"]}
    with tracer.request(method, parent, attributes) as span:

        async def send_with_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                route = _route(scope)
                span.note(http__response__status_code=status, **({"http__route": route} if route else {}))
                if route:
                    span.rename(f"{method} {route}")
                if status >= SERVER_ERROR:
                    span.fail(str(status))
            await send(message)

        await inner(scope, receive, send_with_status)


def _route(scope: Scope) -> str | None:
    """Known once the request was routed."""
    route: Any = scope.get("route")
    path = getattr(route, "path", None)
    if isinstance(path, str):
        return path
    return scope["path"] if scope.get("path") == "/api/v1/jobs" else None

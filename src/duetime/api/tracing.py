"""The spans of API requests. Health checks, metrics and pages have none."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duetime.api.meter import OTHER, template_of
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
    attributes = {
        "http.request.method": method,
        "url.scheme": scope.get("scheme", "http"),
        "url.path": scope["path"],
    }
    with tracer.request(method, parent, attributes) as span:

        async def send_with_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                status, route = message["status"], template_of(scope)
                span.note(http__response__status_code=status)
                if route != OTHER:
                    span.note(http__route=route)
                    span.rename(f"{method} {route}")
                if status >= SERVER_ERROR:
                    span.fail(str(status))
            await send(message)

        await inner(scope, receive, send_with_status)

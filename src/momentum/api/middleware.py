"""Around every request: a bound for its body, headers that protect browsers, and an answer to unexpected
errors. Pure ASGI, so that uploads and event streams pass through in parts."""

from __future__ import annotations

import logging

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from momentum.api.problems import BodyTooLarge, problem

MAX_BODY = 1 << 20
MAX_CSV = 5 << 20
IMPORT_PATH, MEDIA_PATH = "/api/v1/posts/import", "/api/v1/media"
# Of responses that are data. The page sets its own policy.
SECURITY = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
log = logging.getLogger("momentum.api")


class RequestMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_safely(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in SECURITY if one[0] not in own)]
            await send(message)

        try:
            await self._app(scope, _bounded(receive, _limit_of(scope)), send_safely)
        except ClientDisconnect:
            pass  # before the end of its body: no client waits for an answer
        except Exception:
            # The path, never the query: it may hold a code or a state.
            log.exception("%s %s failed", scope["method"], scope["path"])
            if started:
                raise
            answer = problem(500, "internal", "an error of the service; its log has the details")
            await answer(scope, receive, send_safely)


def _limit_of(scope: Scope) -> int | None:
    """None: the route itself counts the bytes of the file."""
    if scope["path"] == MEDIA_PATH:
        return None
    return MAX_CSV if scope["path"] == IMPORT_PATH else MAX_BODY


def _bounded(receive: Receive, limit: int | None) -> Receive:
    if limit is None:
        return receive
    size = 0

    async def receive_some() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise BodyTooLarge(limit)
        return message

    return receive_some

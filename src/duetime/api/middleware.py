"""Around every request: its id, common response headers, a log record, and an answer to unexpected errors."""

from __future__ import annotations

import logging
import re
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duetime.api.long_poll import HELD
from duetime.api.meter import Meter
from duetime.api.problems import INTERNAL, ApiProblem, respond
from duetime.clock import monotonic_micros, wall_micros
from duetime.model.ids import Ids

_logger = logging.getLogger("duetime.api")
MAX_PATH = 4_096  # bytes
MAX_LOGGED_PATH = 256
PATH_TOO_LONG = ApiProblem(
    414, "path_too_long", f"the path is over {MAX_PATH:,} bytes: no name is so long, check the address"
)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# API responses: no-store, nosniff, no framing. Pages may override.
SECURITY = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


class RequestMiddleware:
    """Pure ASGI: no extra task for each request."""

    def __init__(self, inner: ASGIApp, meter: Meter | None = None) -> None:
        self._inner = inner
        self._meter = meter or Meter()
        self._ids = Ids()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        request_id = _given_id(scope) or self._ids.new(wall_micros()).hex
        scope.setdefault("state", {})["request_id"] = request_id
        inner = self._inner if len(scope.get("raw_path") or scope["path"]) <= MAX_PATH else _refuse_path
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._meter.count(scope, status, monotonic_micros() - began - scope["state"].get(HELD, 0))
                headers = message["headers"]
                own = {name for name, _ in headers}
                headers.extend(one for one in SECURITY if one[0] not in own)
                headers.append((b"x-request-id", request_id.encode()))
            await send(message)

        began = monotonic_micros()
        try:
            await inner(scope, receive, send_with_headers)
        except Exception:
            _logger.exception(
                "%s %s failed", scope["method"], _logged(scope), extra={"request_id": request_id}
            )
            if status:
                raise  # the response has started: the connection must be closed
            await respond(INTERNAL, request_id)(scope, receive, send_with_headers)
        _log(scope, status, began, request_id)


def _given_id(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return str(value.decode())
    return None


def _log(scope: Scope, status: int, began: int, request_id: str) -> None:
    """Requests at level debug, failed ones at info. Never the query: it may contain secrets."""
    level = logging.INFO if status >= 400 else logging.DEBUG
    if _logger.isEnabledFor(level):
        fields: dict[str, Any] = {"request_id": request_id, "status": status}
        lapse = (monotonic_micros() - began) / 1_000
        _logger.log(
            level, "%s %s %d in %.1f ms", scope["method"], _logged(scope), status, lapse, extra=fields
        )


def _logged(scope: Scope) -> str:
    path: str = scope["path"]
    return path if len(path) <= MAX_LOGGED_PATH else f"{path[:MAX_LOGGED_PATH]}..."


async def _refuse_path(scope: Scope, receive: Receive, send: Send) -> None:
    await respond(PATH_TOO_LONG, scope["state"]["request_id"])(scope, receive, send)

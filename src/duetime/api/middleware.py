"""Around every request: its id, the headers every answer carries, a line in the log, and an end to whatever a route lets slip."""

from __future__ import annotations

import logging
import re
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duetime.api.holding import HELD
from duetime.api.meter import Meter
from duetime.api.problems import INTERNAL, respond
from duetime.clock import monotonic_micros, wall_micros
from duetime.model.ids import Ids

_logger = logging.getLogger("duetime.api")
_GIVEN = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# An answer of the API is nobody's to keep, to guess at or to frame (S41, S44). A page that says otherwise has its way.
SECURITY = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


class Border:
    """Pure ASGI: one object per request and no task of its own, because it is in every request's way."""

    def __init__(self, inner: ASGIApp, meter: Meter | None = None, route: str | None = None) -> None:
        self._inner = inner
        self._meter = meter or Meter()
        self._route = route  # of everything behind it, where nobody else tells
        self._ids = Ids()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        request_id = _given(scope) or self._ids.new(wall_micros()).hex
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._meter.count(scope, status, monotonic_micros() - began - scope["state"].get(HELD, 0), self._route)
                headers = message["headers"]
                own = {name for name, _ in headers}
                headers.extend(one for one in SECURITY if one[0] not in own)
                headers.append((b"x-request-id", request_id.encode()))
            await send(message)

        began = monotonic_micros()
        try:
            await self._inner(scope, receive, send_marked)
        except Exception:
            _logger.exception("%s %s failed", scope["method"], scope["path"], extra={"request_id": request_id})
            if status:
                raise  # the answer had begun: all that is left is to break it off
            await respond(INTERNAL, request_id)(scope, receive, send_marked)
        _tell(scope, status, began, request_id)


def _given(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _GIVEN.fullmatch(value):
            return str(value.decode())
    return None


def _tell(scope: Scope, status: int, began: int, request_id: str) -> None:
    """Every request at level debug, those that failed at info: a busy API must not drown its log. Never the query: it may hold secrets."""
    level = logging.INFO if status >= 400 else logging.DEBUG
    if _logger.isEnabledFor(level):
        fields: dict[str, Any] = {"request_id": request_id, "status": status}
        lapse = (monotonic_micros() - began) / 1_000
        _logger.log(level, "%s %s %d in %.1f ms", scope["method"], scope["path"], status, lapse, extra=fields)

"""One connection: uvicorn's protocol with timeouts and limits for headers and bodies. When the limit of
connections is reached, an idle connection is closed, or the new one is refused."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from duetime.api.problems import ApiProblem, respond
from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros

HEAD_TIMEOUT = 10 * SECOND
BODY_TIMEOUT = 60 * SECOND
MAX_HEAD = 32 * 1024
MAX_HEADERS = 100
LINGER = 0.5  # seconds: an immediate close could discard the response while the client still sends
CLOSE = {"Connection": "close"}
HEAD_TOO_LARGE = ApiProblem(
    431,
    "head_too_large",
    f"the request header is over {MAX_HEAD:,} bytes or {MAX_HEADERS} fields",
    None,
    CLOSE,
)
MALFORMED = ApiProblem(400, "http_malformed", "the request is not valid HTTP (RFC 9112)", None, CLOSE)
FULL = ApiProblem(
    503,
    "connections_exhausted",
    "too many connections: repeat the request",
    None,
    {**CLOSE, "Retry-After": "1"},
)


class GuardedProtocol(HttpToolsProtocol):
    """Costs a few assignments for each request: the server checks all connections once a second."""

    def __init__(self, *arguments: Any, max_connections: int = 1_000, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._max_connections = max_connections
        self._inner_app = self.app
        self._late_at: Micros | None = None  # deadline for bytes of the client; None: the service is working
        self._in_head = True
        self._head = 0  # bytes of an incomplete header
        self._refused = False

    # As uvicorn's own.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()
        if len(self.connections) > 2 * self._max_connections:
            transport.abort()  # no resources even for an answer
        elif len(self.connections) > self._max_connections and not self._close_idle():
            self._refuse(FULL)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if self.parser is None:
            return
        if self._in_head:
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._refuse(HEAD_TOO_LARGE)
        elif self._late_at is None and self.cycle.response_complete:
            self._expect_head()  # an empty line is not a request, and must not keep the connection open

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._late_at = monotonic_micros() + BODY_TIMEOUT
        large = (
            len(self.headers) > MAX_HEADERS
            or len(self.url) + sum(len(value) for _, value in self.headers) > MAX_HEAD
        )
        self.app = _refuse_head if large else self._inner_app
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._late_at = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(MALFORMED)

    def end_if_late(self, now: Micros) -> None:
        if self._late_at is not None and now > self._late_at:
            self.transport.abort()

    @property
    def idle(self) -> bool:
        return self.timeout_keep_alive_task is not None

    def _expect_head(self) -> None:
        self._in_head, self._head = True, 0
        self._late_at = monotonic_micros() + HEAD_TIMEOUT

    def _close_idle(self) -> bool:
        for other in self.connections:
            if isinstance(other, GuardedProtocol) and other.idle and not other.transport.is_closing():
                other.transport.close()
                return True
        return False

    def _refuse(self, problem: ApiProblem) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        answer = respond(problem, None)
        lines = [
            f"HTTP/1.1 {problem.status} Refused".encode(),
            *(b"%s: %s" % pair for pair in answer.raw_headers),
        ]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self.loop.call_later(LINGER, self.transport.close)


async def _refuse_head(scope: Scope, receive: Receive, send: Send) -> None:
    await respond(HEAD_TOO_LARGE, None)(scope, receive, send)

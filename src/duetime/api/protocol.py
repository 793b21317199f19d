"""One connection: uvicorn's, with limits it does not have. A head must come soon and be small, a body must come in time, and when all
places are taken an idle connection gives way, or the new one does (S56)."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from duetime.api.problems import Refused, respond
from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros

HEAD_WITHIN = 10 * SECOND
BODY_WITHIN = 60 * SECOND
LARGEST_HEAD = 32 * 1024
MOST_HEADERS = 100
LINGER = 0.5  # seconds: closing on what is still being sent would take our answer from whoever sends it
CLOSE = {"Connection": "close"}
HEAD_TOO_LARGE = Refused(
    431, "head_too_large", f"the head is over {LARGEST_HEAD:,} bytes or {MOST_HEADERS} headers: send less", None, CLOSE
)
MALFORMED = Refused(400, "http_malformed", "this is not HTTP as RFC 9112 has it", None, CLOSE)
FULL = Refused(503, "connections_exhausted", "too many connections: repeat the request", None, {**CLOSE, "Retry-After": "1"})


class GuardedProtocol(HttpToolsProtocol):
    """Costs a few assignments a request: who is late is found by a look at all connections once a second."""

    def __init__(self, *arguments: Any, most: int = 1_000, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most = most
        self._usual_app = self.app
        self._late_at: Micros | None = None  # when what is being waited for must have come; None: it is our turn
        self._in_head = True
        self._head = 0  # bytes of one that is not complete yet
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._expect_head()
        if len(self.connections) > 2 * self._most:
            transport.abort()  # not even room to say so
        elif len(self.connections) > self._most and not self._make_room():
            self._turn_away(FULL)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if self.parser is None:
            return
        if self._in_head:
            self._head += len(data)
            if self._head > LARGEST_HEAD:
                self._turn_away(HEAD_TOO_LARGE)
        elif self._late_at is None and self.cycle.response_complete:
            self._expect_head()  # an empty line is no request, and must not keep the connection open either

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._late_at = monotonic_micros() + BODY_WITHIN
        large = len(self.headers) > MOST_HEADERS or len(self.url) + sum(len(value) for _, value in self.headers) > LARGEST_HEAD
        self.app = _refuse_head if large else self._usual_app
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._late_at = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._turn_away(MALFORMED)

    def end_if_late(self, now: Micros) -> None:
        if self._late_at is not None and now > self._late_at:
            self.transport.abort()

    @property
    def idle(self) -> bool:
        return self.timeout_keep_alive_task is not None

    def _expect_head(self) -> None:
        self._in_head, self._head = True, 0
        self._late_at = monotonic_micros() + HEAD_WITHIN

    def _make_room(self) -> bool:
        for other in self.connections:
            if isinstance(other, GuardedProtocol) and other.idle and not other.transport.is_closing():
                other.transport.close()
                return True
        return False

    def _turn_away(self, refused: Refused) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        answer = respond(refused, None)
        lines = [f"HTTP/1.1 {refused.status} Refused".encode(), *(b"%s: %s" % pair for pair in answer.raw_headers)]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self.loop.call_later(LINGER, self.transport.close)


async def _refuse_head(scope: Scope, receive: Receive, send: Send) -> None:
    await respond(HEAD_TOO_LARGE, None)(scope, receive, send)

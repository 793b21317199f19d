"""One connection: uvicorn's protocol with timeouts and limits for headers, bodies and responses. When the
limit of connections is reached, one that waits for its client gives way, or the new one is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from duetime.api.caller import HAS_KEY
from duetime.api.problems import ApiProblem, respond
from duetime.api.rate_limit import among, bucket_of
from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros
from duetime.model.url import Network

HEAD_TIMEOUT = 10 * SECOND
BODY_TIMEOUT = 60 * SECOND
WRITE_TIMEOUT = 30 * SECOND  # in which the client must read something of the response
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


@dataclass(slots=True)
class ConnectionLimits:
    """Of one server. One address may hold three quarters of all connections; a trusted proxy all of them."""

    max_connections: int = 1_000
    proxies: tuple[Network, ...] = ()
    upload_rate: int | None = None  # bytes a second that extend the time for a body; None: its time is fixed
    by_address: Counter[str] = field(default_factory=Counter)

    def address_of(self, client: tuple[str, int] | None) -> str | None:
        """What the limit counts by; None: there is no limit."""
        return None if client is None or among(client[0], self.proxies) else bucket_of(client[0])

    def exceeded(self, address: str | None) -> bool:
        return address is not None and self.by_address[address] > -(-self.max_connections * 3 // 4)


class GuardedProtocol(HttpToolsProtocol):
    """Costs a few assignments for each request: the server checks all connections once a second."""

    def __init__(self, *arguments: Any, limits: ConnectionLimits | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits or ConnectionLimits()
        self.address: str | None = None
        self._unsent, self._progress_at = 0, monotonic_micros()  # of the response
        self._inner_app = self.app
        self._late_at: Micros | None = None  # deadline for bytes of the client; None: the service is working
        self._in_head = True
        self._head = 0  # bytes of an incomplete header
        self._refused = False

    # As uvicorn's own.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        limits = self._limits
        self.address = limits.address_of(self.client)
        if self.address is not None:
            limits.by_address[self.address] += 1
        self._expect_head()
        if len(self.connections) > 2 * limits.max_connections:
            transport.abort()  # no resources even for an answer
        elif limits.exceeded(self.address):
            if not self._make_room(
                [one for one in self._others() if one.idle and one.address == self.address]
            ):
                self._refuse(FULL)
        elif len(self.connections) > limits.max_connections and not self._make_room(self._others()):
            self._refuse(FULL)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.address is not None:
            self._limits.by_address[self.address] -= 1
            if not self._limits.by_address[self.address]:
                del self._limits.by_address[self.address]

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

    def on_body(self, body: bytes) -> None:
        if self._late_at is not None and self._limits.upload_rate is not None:
            self._late_at += len(body) * SECOND // self._limits.upload_rate
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._late_at = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(MALFORMED)

    def end_if_late(self, now: Micros) -> None:
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._progress_at = now
        self._unsent = unsent
        if now - self._progress_at > WRITE_TIMEOUT or (self._late_at is not None and now > self._late_at):
            self.transport.abort()

    @property
    def idle(self) -> bool:
        return self.timeout_keep_alive_task is not None

    @property
    def waiting(self) -> int:
        """How readily it gives way while it waits for its client: 3 idle, 2 an unfinished request of an
        unknown caller, 1 of a caller with a key, 0 never."""
        if self.idle:
            return 3
        if self._late_at is None:
            return 0
        return 2 if self._in_head or not self.scope["state"].get(HAS_KEY) else 1

    def _expect_head(self) -> None:
        self._in_head, self._head = True, 0
        self._late_at = monotonic_micros() + HEAD_TIMEOUT

    def _others(self) -> list[GuardedProtocol]:
        return [
            one
            for one in self.connections
            if isinstance(one, GuardedProtocol) and one is not self and not one.transport.is_closing()
        ]

    def _make_room(self, others: list[GuardedProtocol]) -> bool:
        """End a connection that waits for its client; among equals one of the address that has the most."""
        counts = self._limits.by_address
        found = max(others, key=lambda one: (one.waiting, counts[one.address or ""]), default=self)
        if found is self or not found.waiting:
            return False
        if found.idle:
            found.transport.close()
        else:
            found.transport.abort()
        return True

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

"""The part of a response that is kept: its first 4 KB as text, and a few headers. Reading is bounded, however
large it is."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp import ClientResponse
from multidict import istr

from duetime.errors import TargetNotAllowed
from duetime.invokers.http.guard import TargetRefused
from duetime.model import duration
from duetime.model.instant import SECOND, Micros, to_micros
from duetime.model.settle import AttemptFailed, Directive, GiveUp, NotHere
from duetime.model.target import HIDDEN, HttpTarget
from duetime.model.url import ALLOW_IT

MAX_KEPT_BYTES = 4_096
# Up to this size a response is read to its end, so that the connection can be reused. Beyond it a new
# connection is cheaper.
MAX_READ_BYTES = 64 * 1024
MAX_HEADER = 256
KEPT_HEADERS = tuple(
    map(
        istr,
        (
            "Content-Type",
            "Content-Length",
            "Date",
            "ETag",
            "Location",
            "Retry-After",
            "Request-Id",
            "X-Request-Id",
            "Traceparent",
        ),
    )
)
COMPRESSIONS = ("gzip", "x-gzip", "deflate")


@dataclass(frozen=True, slots=True)
class TargetResponse:
    status: int
    headers: dict[str, str]
    body: str
    truncated: bool

    def to_json(self) -> dict[str, Any]:
        kept = {"status": self.status, "headers": self.headers, "body": self.body}
        return kept | {"truncated": True} if self.truncated else kept


async def read_response(response: ClientResponse, hidden: Iterable[str]) -> TargetResponse:
    """Reading all of it returns the connection to the pool. A connection with more data than we want is
    closed."""
    data, complete = await _read(response)
    if not complete:
        response.close()
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    if coding not in {"", "identity"}:
        data, complete = _decompressed(data, coding)
    headers = {str(name): response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    # A target may echo the secrets it got. Cut only afterwards: a part of a secret would not be found.
    for secret in sorted(hidden, key=len, reverse=True):
        data = data.replace(secret.encode(), HIDDEN.encode())
        headers = {name: value.replace(secret, HIDDEN) for name, value in headers.items()}
    return TargetResponse(
        response.status,
        {name: _clean(value[:MAX_HEADER]) for name, value in headers.items()},
        _readable(data[:MAX_KEPT_BYTES]),
        len(data) > MAX_KEPT_BYTES or not complete,
    )


async def _read(response: ClientResponse) -> tuple[bytes, bool]:
    content = response.content
    if content.at_eof():
        return b"", True
    data = await content.read(MAX_READ_BYTES)
    while not content.at_eof():
        if len(data) >= MAX_READ_BYTES:
            return data, False
        data += await content.read(MAX_READ_BYTES - len(data))
    return data, True


def _decompressed(data: bytes, coding: str) -> tuple[bytes, bool]:
    """Its beginning, and whether it is complete. We ask for no compression, so a target that compresses may
    be hostile."""
    if coding not in COMPRESSIONS:
        return f"(encoded as {coding[:32]}: {len(data)} bytes)".encode(), False
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        text = decompressor.decompress(data, MAX_READ_BYTES)
    except zlib.error:
        return b"(cannot be decompressed)", False
    return text, decompressor.eof


def _clean(text: str) -> str:
    return text if text.isascii() and text.isprintable() else _readable(text.encode("utf-8", "replace"))


def _readable(data: bytes) -> str:
    """Text every store can hold: whole characters, no NUL."""
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


# What a response, or a missing one, means for the job.


RETRYABLE = frozenset({408, 425, 429})
MAX_SHOWN_BODY = 200
MAX_RETRY_AFTER = 366 * 86_400


def directive_for(target: HttpTarget, response: TargetResponse, now: Micros) -> Directive | None:
    """None for success."""
    if target.succeeded(response.status):
        return None
    line = f"HTTP {response.status}{_phrase(response.status)} from {target.method} {target.url.shown}"
    if text := " ".join(response.body[:MAX_SHOWN_BODY].split()):
        line = f"{line}: {''.join(letter if letter.isprintable() else '?' for letter in text)}"
    if response.status >= 500 or response.status in RETRYABLE:
        return AttemptFailed(line, response.to_json(), retry_after(response.headers.get("Retry-After"), now))
    return GiveUp(line, response.to_json())


def directive_for_error(target: HttpTarget, problem: BaseException) -> Directive:
    """The call got no response. The message never reveals the address behind the name."""
    if isinstance(problem, TargetRefused) or isinstance(problem.__cause__, TargetRefused):
        code = TargetNotAllowed.code
        return NotHere(f"target not allowed ({code}): {ALLOW_IT}", {"code": code})
    where = f"{target.method} {target.url.shown}"
    if isinstance(problem, TimeoutError):
        return AttemptFailed(f"no complete response within {duration.show(target.timeout)} from {where}")
    return AttemptFailed(f"no response from {where}: {error_kind(problem)}")


def retry_after(text: str | None, now: Micros) -> timedelta | None:
    """Reads seconds or a date. An invalid value or a past date counts as none."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        seconds = int(text[:12])
    else:
        try:
            moment = parsedate_to_datetime(text)
            seconds = (to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now) // SECOND + 1
        except (ValueError, OverflowError):
            return None
    return timedelta(seconds=min(seconds, MAX_RETRY_AFTER)) if seconds > 0 else None


def error_kind(problem: BaseException) -> str:
    match problem:
        case aiohttp.ClientConnectorDNSError():
            return "its name cannot be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not trusted"
        case aiohttp.ClientSSLError():
            return "no secure connection could be made"
        case aiohttp.ClientConnectorError(os_error=error):
            # By its number, because its text contains the address.
            return f"cannot connect ({os.strerror(error.errno).lower()})" if error.errno else "cannot connect"
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "the connection was closed before a response came"
        case aiohttp.ClientPayloadError():
            return "the response broke off"
        case aiohttp.ClientResponseError():
            return "the response is not HTTP, or its headers are too large"
        case _:
            return type(problem).__name__


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""

"""The part of a response that is kept: its first 4 KB as text, and a few headers. Reading is bounded, however
large it is."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientResponse
from multidict import istr

from duetime.model.target import HIDDEN

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
    text, cut = (
        _decompressed(data, coding)
        if coding not in {"", "identity"}
        else (data[:MAX_KEPT_BYTES], len(data) > MAX_KEPT_BYTES)
    )
    body = _readable(text)
    headers = {
        str(name): _clean(response.headers[name][:MAX_HEADER])
        for name in KEPT_HEADERS
        if name in response.headers
    }
    for secret in hidden:  # a target may echo the secrets it got
        body = body.replace(secret, HIDDEN)
        headers = {name: value.replace(secret, HIDDEN) for name, value in headers.items()}
    return TargetResponse(response.status, headers, body, cut or not complete)


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
    """As much as is kept. We ask for no compression, so a target that compresses may be hostile."""
    if coding not in COMPRESSIONS:
        return f"(encoded as {coding[:32]}: {len(data)} bytes)".encode(), True
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        text = decompressor.decompress(data, MAX_KEPT_BYTES)
    except zlib.error:
        return b"(cannot be decompressed)", True
    return text, not decompressor.eof


def _clean(text: str) -> str:
    return text if text.isascii() and text.isprintable() else _readable(text.encode("utf-8", "replace"))


def _readable(data: bytes) -> str:
    """Text every store can hold: whole characters, no NUL."""
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")

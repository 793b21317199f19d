"""What is read and kept of an answer: its first 4 KB as text, and few headers. However large or packed it is, reading is bounded."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientResponse
from multidict import istr

from duetime.model.target import HIDDEN

KEPT_BYTES = 4_096
# Read to the end up to here, so that the connection can be used again; beyond it a new connection is cheaper.
READ_BYTES = 64 * 1024
LONGEST_HEADER = 256
KEPT_HEADERS = tuple(
    map(istr, ("Content-Type", "Content-Length", "Date", "ETag", "Location", "Retry-After", "Request-Id", "X-Request-Id", "Traceparent"))
)
PACKED = ("gzip", "x-gzip", "deflate")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str
    truncated: bool

    def to_json(self) -> dict[str, Any]:
        kept = {"status": self.status, "headers": self.headers, "body": self.body}
        return kept | {"truncated": True} if self.truncated else kept


async def read_answer(response: ClientResponse, hidden: Iterable[str]) -> Answer:
    """The connection goes back by itself once all is read; it is closed when there is more to come than we want."""
    data, complete = await _read(response)
    if not complete:
        response.close()
    packing = response.headers.get("Content-Encoding", "").strip().lower()
    text, cut = _text(data, packing) if packing not in {"", "identity"} else (data[:KEPT_BYTES], len(data) > KEPT_BYTES)
    body, headers = _readable(text), _few(response)
    for secret in hidden:  # a target may send back what it got
        body = body.replace(secret, HIDDEN)
        headers = {name: value.replace(secret, HIDDEN) for name, value in headers.items()}
    return Answer(response.status, headers, body, cut or not complete)


async def _read(response: ClientResponse) -> tuple[bytes, bool]:
    content = response.content
    if content.at_eof():
        return b"", True
    data = await content.read(READ_BYTES)
    while not content.at_eof():
        if len(data) >= READ_BYTES:
            return data, False
        data += await content.read(READ_BYTES - len(data))
    return data, True


def _text(data: bytes, packing: str) -> tuple[bytes, bool]:
    """Unpacked as far as we keep it. We ask for nothing packed, so whoever sends it may be up to something."""
    if packing not in PACKED:
        return f"(packed as {packing[:32]}: {len(data)} bytes)".encode(), True
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        text = unpacker.decompress(data, KEPT_BYTES)
    except zlib.error:
        return b"(cannot be unpacked)", True
    return text, not unpacker.eof


def _few(response: ClientResponse) -> dict[str, str]:
    found = response.headers
    return {str(name): _clean(found[name][:LONGEST_HEADER]) for name in KEPT_HEADERS if name in found}


def _clean(text: str) -> str:
    return text if text.isascii() and text.isprintable() else _readable(text.encode("utf-8", "replace"))


def _readable(data: bytes) -> str:
    """Text every store can hold: whole characters, no NUL."""
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")

"""HTTP calls of an application to servers that its users name: only addresses that the operator allows, and
answers up to a size."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from duetime.errors import InvalidInput
from duetime.invokers.http.guard import HttpConnections, TargetRefused, trusted_roots
from duetime.invokers.http.response import COMPRESSIONS, error_kind
from duetime.model.url import Egress, parse

MAX_ANSWER = 1 << 20
CONNECT_TIMEOUT = 15.0  # seconds
READ_TIMEOUT = 60.0  # seconds without a byte of the answer
NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class CallFailed(Exception):
    """There is no answer that can be used. The text reveals neither an address behind a name nor a part of an
    answer. `sent`: the request may have had its effect; `allowed`: the address may be called."""

    def __init__(self, reason: str, *, sent: bool, allowed: bool = True) -> None:
        super().__init__(reason)
        self.sent, self.allowed = sent, allowed


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in any case
    body: bytes  # decompressed


class GuardedClient:
    """It connects at its first call. Redirects, cookies and proxies are off. Close it on the same event
    loop."""

    def __init__(
        self,
        allowed: Sequence[str] = (),
        *,
        plain_http: bool = False,
        max_answer: int = MAX_ANSWER,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """The public Internet may be called on the usual ports; `allowed` are networks, addresses and host
        names that may be called, too, on any port."""
        self._egress = Egress.parse(tuple(allowed), plain_http=plain_http)
        self._max_answer = max_answer
        self._headers = {**(headers or {}), "Accept-Encoding": "identity"}
        self._connections: HttpConnections | None = None
        self._timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, **body: Any
    ) -> Answer:
        """One call; `data` and `json` are as in aiohttp. Raises CallFailed."""
        try:
            return await self._request(method, url, {**self._headers, **(headers or {})}, body)
        except (TargetRefused, TimeoutError, aiohttp.ClientError, OSError) as problem:
            failure = _failure(problem)
        # Raised out here, so that it does not carry the original error: its text may reveal too much.
        raise failure

    async def close(self) -> None:
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.close()

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> Answer:
        try:
            target = parse(url, "url")
        except InvalidInput as problem:
            raise CallFailed(str(problem), sent=False, allowed=False) from None
        if self._connections is None:
            self._connections = HttpConnections(self._egress, None, trusted_roots(), 0)
        self._connections.guard.check(target)
        async with self._connections.session.request(
            method,
            URL(str(target), encoded=True),
            headers=headers,
            allow_redirects=False,
            timeout=self._timeout,
            **body,
        ) as response:
            return Answer(response.status, response.headers.copy(), await self._read(response))

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        """Bounded before and after decompression: a small answer can become a huge one."""
        data = b""
        while chunk := await response.content.read(self._max_answer + 1 - len(data)):
            data += chunk
            if len(data) > self._max_answer:
                raise _unusable(f"its answer is over {self._max_answer:,} bytes")
        coding = response.headers.get("Content-Encoding", "").strip().lower()
        if coding in {"", "identity"} or not data:
            return data
        if coding not in COMPRESSIONS:
            raise _unusable("its answer has an unknown compression")
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        try:
            data = decompressor.decompress(data, self._max_answer + 1)
        except zlib.error:
            raise _unusable("its answer cannot be decompressed") from None
        if len(data) > self._max_answer or not decompressor.eof:
            raise _unusable(f"its answer is incomplete, or over {self._max_answer:,} bytes")
        return data


def _unusable(reason: str) -> CallFailed:
    return CallFailed(reason, sent=True)


def _failure(problem: BaseException) -> CallFailed:
    if isinstance(problem, TargetRefused) or isinstance(problem.__cause__, TargetRefused):
        return CallFailed("its address is not allowed", sent=False, allowed=False)
    if isinstance(problem, NOT_SENT):
        return CallFailed(error_kind(problem), sent=False)
    if isinstance(problem, TimeoutError):
        return CallFailed("it does not answer in time", sent=True)
    return CallFailed(error_kind(problem), sent=True)

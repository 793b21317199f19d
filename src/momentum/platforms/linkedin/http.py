"""HTTP calls to LinkedIn: headers, timeouts, and what a failed connection proves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

from momentum import __version__
from momentum.platform import NotSent, OutcomeUnknown, PlatformError, TryLater
from momentum.platforms.linkedin.errors import Answer, error_of
from momentum.platforms.linkedin.settings import LinkedInSettings

USER_AGENT = {"User-Agent": f"Momentum/{__version__}"}
CONNECT_TIMEOUT = 15.0  # seconds
NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
RequestBody = bytes | BytesIO | dict[str, str] | AsyncIterator[bytes]


def encoded(urn: str) -> str:
    """A URN as a part of a path or query: LinkedIn wants its colons encoded."""
    return quote(urn, safe="")


class Http:
    """The connections of one client. They are opened with the first call, in the running event loop."""

    def __init__(self, settings: LinkedInSettings) -> None:
        self.settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        for session in (self._session, self._fresh):
            if session is not None:
                await session.close()
        self._session = self._fresh = None

    async def rest(self, method: str, path: str, token: str, body: Any = None, **options: Any) -> Answer:
        """A call of the versioned API. `path` is encoded already."""
        headers = {
            "Authorization": f"Bearer {token}",
            "LinkedIn-Version": self.settings.version,
            "X-Restli-Protocol-Version": "2.0.0",
            **options.pop("headers", {}),
        }
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        url = f"{self.settings.api_url.rstrip('/')}/rest/{path}"
        return await self.call(method, url, headers=headers, data=data, **options)

    async def call(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        data: RequestBody | None = None,
        creates: bool = False,
    ) -> Answer:
        """One request. Every status from 400 on, and every broken connection, becomes a platform error."""
        answer = await self.exchange(method, url, headers=headers, data=data, creates=creates)
        if not 200 <= answer.status < 300:
            raise error_of(answer, creates=creates, web_url=self.settings.web_url, now=datetime.now(UTC))
        return answer

    async def exchange(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        data: RequestBody | None = None,
        creates: bool = False,
    ) -> Answer:
        """One request, and its response whatever the status is."""
        session = self._creating() if creates else self._calling()
        try:
            async with session.request(
                method, URL(url, encoded=True), headers=headers, data=data, allow_redirects=False
            ) as response:
                # The status line is the proof: a body that breaks off must not turn success into doubt.
                body = b"" if creates and response.status < 300 else await response.read()
                return Answer(response.status, response.headers.copy(), _parsed(body))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(error, creates=creates) from error

    def _calling(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(
                total=None, connect=CONNECT_TIMEOUT, sock_read=self.settings.timeout
            )
            self._session = aiohttp.ClientSession(timeout=timeout, headers=USER_AGENT)
        return self._session

    def _creating(self) -> aiohttp.ClientSession:
        """For the create call, with a new connection each time: a reused one that the server has just closed
        would leave doubt although nothing was created."""
        if self._fresh is None:
            timeout = aiohttp.ClientTimeout(total=self.settings.publish_timeout, connect=CONNECT_TIMEOUT)
            connector = aiohttp.TCPConnector(force_close=True, limit=0)
            self._fresh = aiohttp.ClientSession(timeout=timeout, connector=connector, headers=USER_AGENT)
        return self._fresh


def _failure(error: Exception, *, creates: bool) -> PlatformError:
    reason = str(error) or type(error).__name__
    if isinstance(error, NOT_SENT):
        return NotSent(f"LinkedIn cannot be reached: {reason}", code="no_connection")
    if creates:
        text = f"LinkedIn did not answer the create call ({reason}): the post may be there or not"
        return OutcomeUnknown(text, code="no_answer")
    return TryLater(f"LinkedIn did not answer: {reason}", code="no_answer")


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode(errors="replace")

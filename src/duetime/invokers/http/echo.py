"""A small agent for demonstrations and tests: it records its calls and responds as the path says.

/anything         200 with the request        /status/503       that status
/slow/1.5         200 after 1.5 seconds       /later            202: a report will follow
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from types import TracebackType

from aiohttp import web

from duetime.invokers.http.echo_paths import MAX_SHOWN_BODY, response_for
from duetime.model.codec import encode

MAX_RECORDED = 10_000
MAX_BODY = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    status: int

    def header(self, name: str) -> str | None:
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)


class EchoAgent:
    """`async with EchoAgent() as agent: ... agent.url`. Listens on loopback only."""

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self.calls: deque[Call] = deque(maxlen=MAX_RECORDED)
        self.url = ""
        self._host = host
        self._port = port
        self._runner: web.ServerRunner | None = None
        self._closing = asyncio.Event()
        self._called = asyncio.Event()

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def wait_for_calls(self, count: int) -> list[Call]:
        """Returns when the agent has had this many calls."""
        while len(self.calls) < count:
            self._called.clear()
            await self._called.wait()
        return list(self.calls)

    async def __aenter__(self) -> EchoAgent:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read(MAX_BODY)
        while not request.content.at_eof() and len(body) < MAX_BODY:
            body += await request.content.read(MAX_BODY - len(body))
        status, wait = response_for(request.path)
        self.calls.append(Call(request.method, request.path_qs, tuple(request.headers.items()), body, status))
        self._called.set()
        if wait:
            await asyncio.wait([asyncio.ensure_future(self._closing.wait())], timeout=wait)
        echo = {
            "method": request.method,
            "path": request.path_qs,
            "body": body[:MAX_SHOWN_BODY].decode("utf-8", "replace"),
        }
        return web.Response(status=status, body=encode(echo), content_type="application/json")

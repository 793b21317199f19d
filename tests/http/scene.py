"""What calls are tested with: raw servers that say exactly what they are told to, names that resolve as a
test wants, and one attempt."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast
from uuid import UUID

from aiohttp.abc import AbstractResolver, ResolveResult

from duetime.clock import Clock
from duetime.engine.run.perform import Slot, perform
from duetime.invokers.http.handler import HttpHandler
from duetime.invokers.http.secrets import SecretBox
from duetime.model.codec import decode
from duetime.model.instant import Micros
from duetime.model.job import Claimed
from duetime.model.keyring import KeyRing
from duetime.model.settle import Settlement
from duetime.model.target import HttpTarget
from duetime.model.url import Egress

NOW: Micros = 1_800_000_000_000_000
RING = KeyRing.parse([f"k1:{b64encode(b'k' * 32).decode()}"])
LOCAL = Egress.parse(local=True)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Sink:
    """A server that keeps the raw bytes of every request and does as `serve` says; by default it answers each
    with `answer`."""

    def __init__(self, answer: bytes = OK, serve: Serve | None = None) -> None:
        self.answer = answer
        self.connections = 0
        self.requests: list[bytes] = []
        self.port = 0
        self._serve = serve

    def url(self, host: str = "127.0.0.1", path: str = "/run", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await (self._serve or self._answer_each)(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer_each(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            self.requests.append(await read_request(reader))
            writer.write(self.answer)
            await writer.drain()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
    )
    return head + await reader.readexactly(length)


@asynccontextmanager
async def serving(sink: Sink, host: str = "127.0.0.1", port: int = 0, **options: Any) -> AsyncIterator[Sink]:
    running: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        running.add(me)
        with suppress(asyncio.CancelledError):
            await sink.connected(reader, writer)

    server = await asyncio.start_server(connected, host, port, **options)
    sink.port = server.sockets[0].getsockname()[1]
    try:
        yield sink
    finally:
        server.close()
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class Names(AbstractResolver):
    """Answers each question about a name with the next of its answers; the last is repeated."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        if host not in self._answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        given = self._answers[host]
        addresses = given.pop(0) if len(given) > 1 else given[0]
        kinds = [(text, socket.AF_INET6 if ":" in text else socket.AF_INET) for text in addresses]
        return [
            ResolveResult(hostname=host, host=text, port=port, family=kind, proto=0, flags=0)
            for text, kind in kinds
        ]

    async def close(self) -> None:
        return


@asynccontextmanager
async def calling(egress: Egress = LOCAL, ring: KeyRing = RING, **options: Any) -> AsyncIterator[HttpHandler]:
    handler = HttpHandler(lambda: NOW, egress, ring, **options)
    try:
        yield handler
    finally:
        await handler.close()


class StillClock:
    def now(self) -> Micros:
        return NOW

    def noise(self) -> float:
        return 1.0


def job(target: dict[str, Any], payload: bytes = b"{}", **fields: Any) -> Claimed:
    tenant = fields.get("tenant", "default")
    spec = SecretBox(RING).seal_target(HttpTarget.from_json(target), tenant).to_spec()
    plain = Claimed(
        UUID(int=7),
        1,
        "@http",
        payload,
        NOW,
        "default",
        5,
        NOW,
        0,
        0,
        False,
        None,
        None,
        None,
        None,
        spec,
        None,
        "default",
    )
    return plain._replace(**fields)


async def attempt(handler: HttpHandler, wanted: Claimed) -> Settlement:
    """One attempt as a worker makes it."""
    return await perform(wanted, Slot(), handler, cast("Clock", StillClock()), cast("Any", None))


def result(settlement: Settlement) -> Any:
    return None if settlement.result is None else decode(settlement.result)

"""The asyncio transport: HTTP/1.1 on streams of the standard library. Connections stay open between
requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from duetime.clock import monotonic_micros, pause
from duetime.errors import InvalidInput, NotOpen
from duetime.model.instant import Micros
from duetime.remote.endpoint import CHUNK, MAX_IDLE, Endpoint, check_size
from duetime.remote.request import Reply, ServiceRequest

MAX_HEAD = 64 * 1024
NO_BODY = (204, 304)
BROKEN = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)  # ValueError: the bytes are not HTTP


class ResponseHead(NamedTuple):
    status: int
    headers: dict[str, str]
    reusable: bool


class AsyncTransport:
    """Sends requests, each on a connection of its own."""

    def __init__(self, endpoint: Endpoint, max_connections: int) -> None:
        self._endpoint = endpoint
        self._idle: deque[tuple[AsyncConnection, Micros]] = deque()  # with the time since when
        self._slots = asyncio.Semaphore(max_connections)
        self._holding: set[AsyncConnection] = set()
        self._max_holding = (
            max_connections // 2
        )  # leaves connections for other calls while many wait for a job
        self._closed = False

    async def send(self, request: ServiceRequest) -> Reply:
        async with self._slots:
            connection = await self._take()
            if request.held and len(self._holding) >= self._max_holding:
                request = request.without_hold()
            async with self._closing_on_error(connection), self._held(connection, request):
                async with asyncio.timeout(self._endpoint.timeout + request.held):
                    head = await connection.begin(self._endpoint, request)
                    body = await connection.body(head)
            self._keep(connection, head)
            return Reply(head.status, head.headers, body)

    async def open(self, request: ServiceRequest, silence_timeout: float) -> AsyncStream:
        """A reply without an end. `silence_timeout`: seconds without a byte after which it fails."""
        connection = await self._take()
        async with self._closing_on_error(connection), asyncio.timeout(self._endpoint.timeout):
            head = await connection.begin(self._endpoint, request)
        return AsyncStream(self._endpoint, connection, head, silence_timeout)

    async def pause(self, seconds: float) -> None:
        await pause(seconds)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.popleft()[0].end()
        for connection in list(self._holding):
            connection.close()

    @asynccontextmanager
    async def _closing_on_error(self, connection: AsyncConnection) -> AsyncIterator[None]:
        try:
            yield
        except BaseException as problem:
            connection.close()
            if isinstance(problem, BROKEN):
                raise self._endpoint.unreachable(problem, True) from problem
            raise

    @asynccontextmanager
    async def _held(self, connection: AsyncConnection, request: ServiceRequest) -> AsyncIterator[None]:
        if request.held:
            self._holding.add(connection)
        try:
            yield
        finally:
            self._holding.discard(connection)

    async def _take(self) -> AsyncConnection:
        if self._closed:
            raise NotOpen("the client is closed: make a new one")
        while self._idle:
            connection, since = self._idle.pop()
            if monotonic_micros() - since < MAX_IDLE and connection.usable:
                return connection
            connection.close()
        try:
            async with asyncio.timeout(self._endpoint.timeout):
                return await AsyncConnection.make(self._endpoint)
        except OSError as problem:
            raise self._endpoint.unreachable(problem, False) from problem

    def _keep(self, connection: AsyncConnection, head: ResponseHead) -> None:
        if head.reusable and not self._closed:
            self._idle.append((connection, monotonic_micros()))
        else:
            connection.close()


class AsyncConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()

    @staticmethod
    async def make(endpoint: Endpoint) -> AsyncConnection:
        address = endpoint.address
        return AsyncConnection(
            *await asyncio.open_connection(address.host, address.port, ssl=endpoint.tls, limit=MAX_HEAD)
        )

    @property
    def usable(self) -> bool:
        """Open, and of the event loop that runs now."""
        return (
            not self._reader.at_eof()
            and not self._writer.is_closing()
            and self._loop is asyncio.get_running_loop()
        )

    async def begin(self, endpoint: Endpoint, request: ServiceRequest) -> ResponseHead:
        lines = [f"{request.method} {endpoint.address.prefix}{request.path} HTTP/1.1"]
        lines += [f"{name}: {_one_line(value)}" for name, value in endpoint.headers(request).items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (request.body or b""))
        await self._writer.drain()
        while (head := read_head(await self._reader.readuntil(b"\r\n\r\n"))).status < 200:
            pass  # interim responses precede the final one
        return head

    async def body(self, head: ResponseHead) -> bytes:
        parts, size = [], 0
        while part := await self.some(head, size):
            parts.append(part)
            size += len(part)
            check_size(size)
        return b"".join(parts)

    async def some(self, head: ResponseHead, before: int) -> bytes:
        """The next bytes of a body of which `before` bytes have been read; none at its end."""
        if head.status in NO_BODY:
            return b""
        if head.headers.get("transfer-encoding", "").lower() == "chunked":
            return await self._chunk()
        if "content-length" not in head.headers:
            return await self._reader.read(CHUNK)
        left = int(head.headers["content-length"]) - before
        return await self._reader.readexactly(min(left, CHUNK)) if left > 0 else b""

    async def _chunk(self) -> bytes:
        size = int((await self._reader.readuntil(b"\r\n")).partition(b";")[0], 16)
        check_size(size)
        if size:
            return (await self._reader.readexactly(size + 2))[:-2]
        while await self._reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailers
        return b""

    def close(self) -> None:
        with suppress(RuntimeError):  # its event loop is closed, and so is the connection
            self._writer.close()

    async def end(self) -> None:
        self.close()
        with suppress(OSError, RuntimeError):
            await self._writer.wait_closed()


class AsyncStream:
    def __init__(
        self, endpoint: Endpoint, connection: AsyncConnection, head: ResponseHead, silence_timeout: float
    ) -> None:
        self._endpoint, self._connection, self._head, self._timeout = (
            endpoint,
            connection,
            head,
            silence_timeout,
        )
        self.status, self.headers = head.status, head.headers
        self._read = 0

    async def read(self) -> bytes:
        """Some bytes, as soon as there are any; none at the end."""
        try:
            async with asyncio.timeout(self._timeout):
                found = await self._connection.some(self._head, self._read)
        except BROKEN as problem:
            raise self._endpoint.unreachable(problem, True) from problem
        self._read += len(found)
        return found

    async def close(self) -> None:
        await self._connection.end()


def read_head(data: bytes) -> ResponseHead:
    """Raises ValueError if it is not a head of HTTP/1."""
    first, *rest = data.decode("latin-1").split("\r\n")
    version, _, after = first.partition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0") or not after[:3].isdigit():
        raise ValueError("the server does not speak HTTP")
    headers: dict[str, str] = {}
    for line in filter(None, rest):
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    framed = "content-length" in headers or "transfer-encoding" in headers or int(after[:3]) in NO_BODY
    lasting = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    return ResponseHead(int(after[:3]), headers, framed and lasting)


def _one_line(value: str) -> str:
    if "\r" in value or "\n" in value:
        raise InvalidInput("headers", "a header must not contain a newline")
    return value

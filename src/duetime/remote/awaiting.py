"""The transport for asyncio: HTTP/1.1 on streams of the standard library, with connections kept open between requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from duetime.clock import monotonic_micros, pause
from duetime.errors import InvalidInput, NotOpen
from duetime.model.instant import Micros
from duetime.remote.message import IDLE, Line, too_large
from duetime.remote.talk import Reply, Request

LARGEST_HEAD = 64 * 1024
CHUNK = 64 * 1024
NO_BODY = (204, 304)
BROKEN = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)  # ValueError: what was sent is not HTTP


class Head(NamedTuple):
    status: int
    headers: dict[str, str]
    reusable: bool


class _Kept(NamedTuple):
    connection: Connection
    since: Micros


class Wire:
    """Sends requests, each on a connection nobody else uses at the time."""

    def __init__(self, line: Line, most: int) -> None:
        self._line = line
        self._kept: deque[_Kept] = deque()
        self._room = asyncio.Semaphore(most)
        self._held: set[Connection] = set()
        self._most_held = most // 2  # those who only wait must not keep all others waiting
        self._closed = False

    async def send(self, request: Request) -> Reply:
        async with self._room:
            connection = await self._take()
            if request.held and len(self._held) >= self._most_held:
                request = request.at_once()
            try:
                async with self._holding(connection, request), asyncio.timeout(self._line.timeout + request.held):
                    head = await connection.begin(self._line, request)
                    body = await connection.body(head)
            except BROKEN as problem:
                connection.close()
                raise self._line.unreachable(problem, True) from problem
            except BaseException:
                connection.close()
                raise
            self._keep(connection, head)
            return Reply(head.status, head.headers, body)

    async def open(self, request: Request, patience: float) -> Stream:
        """An answer that has no end. `patience`: seconds without a byte after which it is given up."""
        connection = await self._take()
        try:
            async with asyncio.timeout(self._line.timeout):
                head = await connection.begin(self._line, request)
        except BROKEN as problem:
            connection.close()
            raise self._line.unreachable(problem, True) from problem
        except BaseException:
            connection.close()
            raise
        return Stream(self._line, connection, head, patience)

    async def pause(self, seconds: float) -> None:
        await pause(seconds)

    async def close(self) -> None:
        self._closed = True
        while self._kept:
            await self._kept.popleft().connection.end()
        for connection in list(self._held):
            connection.close()

    @asynccontextmanager
    async def _holding(self, connection: Connection, request: Request) -> AsyncIterator[None]:
        if request.held:
            self._held.add(connection)
        try:
            yield
        finally:
            self._held.discard(connection)

    async def _take(self) -> Connection:
        if self._closed:
            raise NotOpen("the client is closed: make a new one")
        while self._kept:
            kept = self._kept.pop()
            if monotonic_micros() - kept.since < IDLE and kept.connection.usable:
                return kept.connection
            kept.connection.close()
        try:
            async with asyncio.timeout(self._line.timeout):
                return await Connection.make(self._line)
        except OSError as problem:
            raise self._line.unreachable(problem, False) from problem

    def _keep(self, connection: Connection, head: Head) -> None:
        if head.reusable and not self._closed:
            self._kept.append(_Kept(connection, monotonic_micros()))
        else:
            connection.close()


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()

    @staticmethod
    async def make(line: Line) -> Connection:
        address = line.address
        return Connection(*await asyncio.open_connection(address.host, address.port, ssl=line.tls, limit=LARGEST_HEAD))

    @property
    def usable(self) -> bool:
        """Not closed by the other end, and of the event loop that runs now."""
        return not self._reader.at_eof() and not self._writer.is_closing() and self._loop is asyncio.get_running_loop()

    async def begin(self, line: Line, request: Request) -> Head:
        lines = [f"{request.method} {line.address.prefix}{request.path} HTTP/1.1"]
        lines += [f"{name}: {_one_line(value)}" for name, value in line.headers(request).items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (request.body or b""))
        await self._writer.drain()
        while (head := read_head(await self._reader.readuntil(b"\r\n\r\n"))).status < 200:
            pass  # interim answers announce the one that counts
        return head

    async def body(self, head: Head) -> bytes:
        parts, size = [], 0
        while part := await self.some(head, size):
            parts.append(part)
            size += len(part)
            too_large(size)
        return b"".join(parts)

    async def some(self, head: Head, before: int) -> bytes:
        """The next bytes of an answer of which `before` are known; none at its end."""
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
        too_large(size)
        if size:
            return (await self._reader.readexactly(size + 2))[:-2]
        while await self._reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailers
        return b""

    def close(self) -> None:
        with suppress(RuntimeError):  # its event loop is gone, and so is the connection
            self._writer.close()

    async def end(self) -> None:
        self.close()
        with suppress(OSError, RuntimeError):
            await self._writer.wait_closed()


class Stream:
    def __init__(self, line: Line, connection: Connection, head: Head, patience: float) -> None:
        self._line, self._connection, self._head, self._patience = line, connection, head, patience
        self.status, self.headers = head.status, head.headers
        self._read = 0

    async def read(self) -> bytes:
        """Some bytes, as soon as there are any; none at the end."""
        try:
            async with asyncio.timeout(self._patience):
                found = await self._connection.some(self._head, self._read)
        except BROKEN as problem:
            raise self._line.unreachable(problem, True) from problem
        self._read += len(found)
        return found

    async def close(self) -> None:
        await self._connection.end()


def read_head(data: bytes) -> Head:
    """Raises ValueError for what is no head of HTTP/1."""
    first, *rest = data.decode("latin-1").split("\r\n")
    version, _, after = first.partition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0") or not after[:3].isdigit():
        raise ValueError("what answers there does not speak HTTP")
    headers: dict[str, str] = {}
    for line in filter(None, rest):
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    framed = "content-length" in headers or "transfer-encoding" in headers or int(after[:3]) in NO_BODY
    lasting = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    return Head(int(after[:3]), headers, framed and lasting)


def _one_line(value: str) -> str:
    if "\r" in value or "\n" in value:
        raise InvalidInput("headers", "a header may have one line only")
    return value

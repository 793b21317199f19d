"""A server that sends scripted bytes, to test failures between a client and a service."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

CUT = b""  # the connection ends without an answer
HANG = b"hang"  # no answer, and the connection stays


@dataclass(slots=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass(slots=True)
class Script:
    """Answers in order; the last one is repeated."""

    answers: list[bytes]
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    connections: int = 0
    close: bool = False  # after each answer

    def next(self) -> bytes:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def answer(status: int, body: Any = None, kind: str = "application/json", **headers: str) -> bytes:
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def problem(
    status: int, code: str, detail: str = "because", field: str | None = None, **headers: str
) -> bytes:
    body = {
        "type": f"urn:duetime:problem:{code}",
        "title": "t",
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": "r1",
    }
    return answer(
        status, body if field is None else {**body, "field": field}, "application/problem+json", **headers
    )


@asynccontextmanager
async def scripted(
    *answers: bytes, tls: ssl.SSLContext | None = None, close: bool = False
) -> AsyncIterator[Script]:
    script = Script(list(answers), close=close)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]  # there is one
        script.connections += 1
        number = script.connections
        try:
            while (seen := await _request(reader, number)) is not None:
                script.seen.append(seen)
                given = script.next()
                if given == HANG:
                    await asyncio.Event().wait()
                writer.write(given)
                await writer.drain()
                if given == CUT or script.close:
                    break
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    script.url = f"{'https' if tls else 'http'}://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
    try:
        yield script
    finally:
        server.close()
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _request(reader: asyncio.StreamReader, connection: int) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
        return None
    first, *rest = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(method, path, headers, body, connection)

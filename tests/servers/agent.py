"""An HTTP target for tests: answers every call with 200 and records its time and its Duetime headers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import httptools
import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}"

HEADERS = (b"duetime-schedule", b"duetime-fire-time", b"duetime-attempt", b"idempotency-key")

ROOT = Path(__file__).parents[2]


class Call(NamedTuple):
    schedule: str
    fire_time: float
    attempt: int
    key: str
    at: float

    @property
    def late(self) -> float:
        return self.at - self.fire_time


class Agent:
    """Runs the target in its own process, so that the test does not slow it down."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "calls"
        self._file.touch()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.agent", str(self._file)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def __len__(self) -> int:
        return self._file.read_bytes().count(b"\n")

    def clear(self) -> None:
        self._file.write_bytes(b"")

    def calls(self) -> list[Call]:
        rows = [line.split("\t") for line in self._file.read_text().splitlines()]
        return [
            Call(name, _seconds(fire), int(attempt or 1), key, float(at))
            for name, fire, attempt, key, at in rows
        ]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def doubled(calls: list[Call]) -> list[list[Call]]:
    """The calls of fires that were called more than once."""
    counted = Counter((call.schedule, call.fire_time) for call in calls)
    return [
        [call for call in calls if (call.schedule, call.fire_time) == fire]
        for fire, count in counted.items()
        if count > 1
    ]


class _Listener(asyncio.Protocol):
    def __init__(self, record: IO[bytes]) -> None:
        self._record = record
        self._parser: Any = httptools.HttpRequestParser(self)
        self._headers: dict[bytes, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._arrived = time.time()
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_message_complete(self) -> None:
        values = [self._headers.get(name, b"") for name in HEADERS]
        self._record.write(b"\t".join([*values, repr(self._arrived).encode()]) + b"\n")
        self._headers = {}
        self._transport.write(ANSWER)


async def _listen(file: Path) -> None:
    with file.open("ab", buffering=0) as record:
        server = await asyncio.get_running_loop().create_server(lambda: _Listener(record), "127.0.0.1", 0)
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_listen(Path(sys.argv[1])))

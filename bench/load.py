"""A cheap client: prepared requests over open connections, each after the previous answer. Prints one line
of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial
from typing import Any

import httptools
import uvloop

from bench.figures import quantile


class Talker(asyncio.Protocol):
    """One connection: sends as long as requests are left."""

    def __init__(self, request: bytes, budget: list[int], waits: list[float], over: asyncio.Event) -> None:
        self._request, self._budget, self._waits, self._over = request, budget, waits, over
        self._parser: Any = httptools.HttpResponseParser(self)
        self.bad = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._waits.append(time.perf_counter() - self._sent)
        self.bad += self._parser.get_status_code() >= 300
        self._parser = httptools.HttpResponseParser(self)
        self._send()

    def connection_lost(self, problem: Exception | None) -> None:
        self._over.set()

    def _send(self) -> None:
        if self._budget[0] <= 0:
            self._over.set()
            return
        self._budget[0] -= 1
        self._sent = time.perf_counter()
        self._transport.write(self._request)


async def load(host: str, port: int, path: str, body: str, connections: int, count: int) -> dict[str, float]:
    data = body.encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\ncontent-length: "
        f"{len(data)}\r\n\r\n"
    )
    await _round(host, port, head.encode() + data, connections, connections * 5)
    began = time.perf_counter()
    waits, bad = await _round(host, port, head.encode() + data, connections, count)
    seconds = time.perf_counter() - began
    return {
        "rate": len(waits) / seconds,
        "p50": quantile(waits, 0.5) * 1e3,
        "p99": quantile(waits, 0.99) * 1e3,
        "bad": bad,
    }


async def _round(
    host: str, port: int, request: bytes, connections: int, count: int
) -> tuple[list[float], int]:
    loop, budget, waits = asyncio.get_running_loop(), [count], list[float]()
    talkers, ends = [], []
    for _ in range(connections):
        over = asyncio.Event()
        transport, talker = await loop.create_connection(
            partial(Talker, request, budget, waits, over), host, port
        )
        talkers.append((transport, talker))
        ends.append(over.wait())
    await asyncio.gather(*ends)
    for transport, _ in talkers:
        transport.close()
    return waits, sum(talker.bad for _, talker in talkers)


def main(host: str, port: str, path: str, body: str, connections: str, count: str) -> None:
    answer = uvloop.run(load(host, int(port), path, body, int(connections), int(count)))
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

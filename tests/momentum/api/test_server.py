"""The server as strangers meet it: unfinished requests, too many of them, wrong keys, and event streams."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import aiohttp
import pytest
from fastapi import FastAPI

from duetime.api import protocol
from duetime.api.protocol import GuardedProtocol
from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND
from momentum.api.server import UPLOAD_RATE, address_of, listen, serving
from momentum.api.service import build
from tests.momentum.api.scene import API, Client, Running
from tests.momentum.api.test_cli import environment

PATIENCE = 60.0
HALF_A_HEAD = b"GET /api/v1/status HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@dataclass
class Own:
    """A server of its own for one test, with its own limits and counters."""

    address: str
    port: int
    app: FastAPI
    server: Any

    def connections(self) -> list[GuardedProtocol]:
        return [one for one in self.server.server_state.connections if isinstance(one, GuardedProtocol)]


@asynccontextmanager
async def own(service: Running, **settings: Any) -> AsyncIterator[Own]:
    listener = listen("127.0.0.1", 0)
    momentum = replace(service.momentum, settings=replace(service.momentum.settings, **settings))
    app = build(momentum)
    async with serving(app, listener) as server:
        yield Own(address_of(listener), listener.getsockname()[1], app, server)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", ["/posts", "/posts/import", "/media"])
async def test_client_that_stops_sending_is_disconnected(
    service: Running,
    client: Client,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT", 100_000)
    monkeypatch.setattr(protocol, "BODY_TIMEOUT", 100_000)
    lines = [
        f"POST {API}{path} HTTP/1.1",
        *("host: 127.0.0.1", "content-length: 5000000", "content-type: application/json"),
        *(f"authorization: Bearer {client.key}", "", "{"),
    ]
    async with own(service) as server, asyncio.timeout(PATIENCE):
        for data in (HALF_A_HEAD, "\r\n".join(lines).encode()):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(data)
            assert b" 200 " not in await reader.read()
            writer.close()
    assert "failed" not in caplog.text, "it is no fault of the service"


async def test_upload_that_makes_progress_has_more_time(service: Running, client: Client) -> None:
    size = UPLOAD_RATE * 50
    lines = [
        f"POST {API}/media HTTP/1.1",
        *("host: 127.0.0.1", f"content-length: {2 * size}", f"authorization: Bearer {client.key}", "", ""),
    ]
    async with own(service) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write("\r\n".join(lines).encode())
        await until(lambda: [one for one in server.connections() if not one._in_head])
        [connection] = server.connections()
        before = connection._late_at
        assert before is not None
        writer.write(bytes(size))
        await until(lambda: connection._late_at == before + 50 * SECOND)
        connection.end_if_late(monotonic_micros() + 100 * SECOND)
        assert not connection.transport.is_closing()
        connection.end_if_late(monotonic_micros() + 120 * SECOND)
        assert connection.transport.is_closing()
        writer.close()
        await until(lambda: not server.connections())
    assert reader.at_eof() or await reader.read() == b""


async def test_wrong_keys_of_one_address_are_limited(service: Running, client: Client) -> None:
    async def ask(server: Own, key: str, path: str = "/status", **headers: str) -> tuple[int, str]:
        headers["Authorization"] = f"Bearer {key}"
        async with http.get(f"{server.address}{API}{path}", headers=headers) as response:
            return response.status, (await response.json()).get("code", "")

    def stop_the_clock(server: Own) -> None:
        server.app.state.service.wrong_keys._buckets._now = lambda: SECOND

    async with own(service) as server, aiohttp.ClientSession() as http:
        stop_the_clock(server)
        assert (await ask(server, client.key))[0] == 200
        found = [await ask(server, f"mo_wrong{number}") for number in range(33)]
        assert found == [(401, "access_denied")] * 30 + [(429, "rate_limited")] * 3
        assert (await ask(server, client.key))[0] == 200, "it was valid before"
        async with http.post(f"{server.address}{API}/session", json={"key": "mo_guess"}) as response:
            assert response.status == 429
            assert int(response.headers["retry-after"]) >= 1
    async with own(service, proxies=("127.0.0.0/8",)) as server, aiohttp.ClientSession() as http:
        stop_the_clock(server)
        for number in range(30):
            await ask(server, f"mo_wrong{number}", **{"X-Forwarded-For": "203.0.113.9"})
        assert (await ask(server, "mo_wrong", **{"X-Forwarded-For": "203.0.113.9"}))[0] == 429
        assert (await ask(server, "mo_wrong", **{"X-Forwarded-For": "203.0.113.10"}))[0] == 401


async def test_streams_of_one_key_are_limited(service: Running, client: Client, other_client: Client) -> None:
    async with own(service) as server:
        streams = server.app.state.service.streams
        streams.max_per_key = 2
        address = f"{server.address}{API}/events"
        async with client.http.get(address) as first, client.http.get(address) as second:
            assert (first.status, second.status) == (200, 200)
            async with client.http.get(address) as third:
                assert (third.status, (await third.json())["code"]) == (429, "streams_exhausted")
            async with other_client.http.get(address) as other:
                assert other.status == 200
            second.close()
            await until(lambda: streams._open.total() == 1)
            async with client.http.get(address) as third:
                assert third.status == 200
        await until(lambda: streams._open.total() == 0)


@pytest.mark.slow
def test_silent_strangers_do_not_stop_other_callers_or_fill_the_log(tmp_path: Path) -> None:
    """More half requests than the process may have files."""
    files = 340
    limited = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"]
    command = [*limited, sys.executable, "-m", "momentum", "serve", "--port", "0", "--role", "api"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            ask_among_strangers(port_of(process), 2 * files)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
    said = (tmp_path / "log").read_text()
    assert "Traceback" not in said
    assert f"{files} files may be open" in said
    assert len(said) < 5_000


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    said = ""
    while (found := re.search(r"API +http://127\.0\.0\.1:(\d+)", said)) is None:
        line = process.stdout.readline()
        assert line, said
        said += line
    return int(found[1])


def ask_among_strangers(port: int, strangers: int) -> None:
    with ExitStack() as stack:
        for number in range(strangers):
            one = stack.enter_context(socket.socket())
            one.bind((f"127.0.0.{2 + number % 200}", 0))
            one.connect(("127.0.0.1", port))
            with suppress(ConnectionError):  # refused already
                one.sendall(HALF_A_HEAD)
        for _ in range(5):
            with urlopen(f"http://127.0.0.1:{port}{API}/status", timeout=PATIENCE) as answer:
                assert answer.status == 200

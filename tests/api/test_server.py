"""The server in a process of its own: `duetime serve` with its API."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import duetime as dt
from duetime.api.server import listen, require_loopback, serving
from duetime.api.service import build
from duetime.config import Settings
from duetime.errors import ConfigError
from tests.cli.node import Node

pytestmark = pytest.mark.slow


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path, "serve", "--port", "0")
    yield made
    made.kill()


def test_serve_prints_its_address_serves_and_stops_cleanly(node: Node) -> None:
    said = node.until("stop")
    assert "roles   api, planner, worker" in said
    found = re.search(r"API     (http://127\.0\.0\.1:\d+)/api/v1", said)
    assert found is not None
    address = found[1]
    assert f"docs    {address}/docs" in said
    assert f"curl {address}/api/v1/jobs" in said
    body = f'{{"target": {{"type": "http", "url": "{address}/healthz", "method": "GET"}}}}'.encode()
    request = urllib.request.Request(f"{address}/api/v1/jobs", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 201
    status, err = node.end(signal.SIGTERM)
    assert status == 0, err
    assert "Traceback" not in err


def test_used_port_is_reported() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ConfigError, match="--port"):
            listen("127.0.0.1", other.getsockname()[1])


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_second_process_on_a_port_is_refused(loop: str) -> None:
    """Both could bind: neither listened yet."""
    factory = pytest.importorskip(loop).new_event_loop

    async def start(listener: socket.socket) -> None:
        app = dt.App("memory://")
        async with serving(build(app, Settings()), listener):
            pass

    with listen("127.0.0.1", 0) as first, asyncio.Runner(loop_factory=factory) as runner:
        second = listen("127.0.0.1", first.getsockname()[1])
        first.listen()
        with (
            second,
            pytest.raises(
                ConfigError,
                match=r"port: cannot listen at .* \(Address already in use\): choose another with --port",
            ),
        ):
            runner.run(start(second))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org", "127.0.0.1.example.org"])
def test_service_without_keys_refuses_public_addresses(host: str) -> None:
    with pytest.raises(ConfigError, match="no authentication"):
        require_loopback(host)
    for local in ("127.0.0.1", "127.0.0.2", "::1", "localhost"):
        require_loopback(local)

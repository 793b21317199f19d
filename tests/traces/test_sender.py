"""The sender: what a collector says, and how long it is asked again. And the variables that say where it is."""

from __future__ import annotations

import gzip
import logging
import os
import ssl
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.observers.traces.sender import Sender
from duetime.observers.traces.variables import ExportLimits, collector, limits
from tests.http.test_tls import certificate, server_side
from tests.servers.otlp import OtlpReceiver


class Collector:
    """Answers with these statuses, one after the other, then with 200."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        own = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                own.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                own.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, headers = own.answers.pop(0) if own.answers else (200, {})
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "4"}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"text")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def sender(self, **variables: str) -> Sender:
        return Sender(collector(self.url, {f"OTEL_EXPORTER_OTLP_{k}": v for k, v in variables.items()}))


@pytest.fixture
def receiver() -> Iterator[Collector]:
    collector = Collector()
    threading.Thread(target=collector.server.serve_forever, daemon=True).start()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_request_is_repeated_when_the_collector_says(status: int, receiver: Collector) -> None:
    receiver.answers = [(status, {"Retry-After": "1"})]
    assert receiver.sender(TIMEOUT="60").send(b"spans")
    assert receiver.bodies == [b"spans", b"spans"]


def test_date_is_a_time_to_wait_until(receiver: Collector) -> None:
    receiver.answers = [(503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})]
    assert receiver.sender(TIMEOUT="60").send(b"spans")
    assert len(receiver.bodies) == 2


def test_request_is_not_repeated_after_its_time(receiver: Collector, caplog: Any) -> None:
    receiver.answers = [(503, {"Retry-After": "3600"})]
    with caplog.at_level(logging.WARNING):
        assert not receiver.sender().send(b"spans")
    assert len(receiver.bodies) == 1
    assert f"spans not exported to {receiver.url}/v1/traces: HTTP 503 text" in caplog.text


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500])
def test_refused_request_is_not_repeated(status: int, receiver: Collector, caplog: Any) -> None:
    receiver.answers = [(status, {})]
    with caplog.at_level(logging.WARNING):
        assert not receiver.sender(TIMEOUT="60").send(b"spans")
    assert len(receiver.bodies) == 1
    assert f"HTTP {status} text" in caplog.text


def test_collector_that_is_away_is_logged(caplog: Any) -> None:
    with caplog.at_level(logging.WARNING):
        url = "http://anna:s3cret@127.0.0.1:1"
        assert not Sender(collector(url, {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.5"})).send(b"")
    assert "spans not exported to http://127.0.0.1:1/v1/traces:" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(("name", "decode"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)])
def test_body_is_compressed_and_headers_are_sent(name: str, decode: Any, receiver: Collector) -> None:
    assert receiver.sender(COMPRESSION=name, HEADERS="x-team=blue%20sky, y=1").send(b"spans")
    [body], [headers] = receiver.bodies, receiver.headers
    assert decode(body) == b"spans"
    assert (headers["content-encoding"], headers["x-team"], headers["y"]) == (name, "blue sky", "1")
    assert headers["content-type"] == "application/x-protobuf"


def test_login_in_the_url_becomes_a_header() -> None:
    made = collector("https://anna:s%40cret@collector:4318", {})
    assert made.url == "https://collector:4318/v1/traces"
    assert made.headers == {"authorization": "Basic YW5uYTpzQGNyZXQ="}


def test_certificates_of_the_variables_are_used(receiver: Collector, tmp_path: Path) -> None:
    """The collector has a certificate that is not public, and asks for one."""
    own, client = certificate(tmp_path, "localhost"), certificate(tmp_path, "client.example")
    context = server_side(own)
    context.load_verify_locations(client)
    context.verify_mode = ssl.CERT_REQUIRED
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
    url = f"https://localhost:{receiver.server.server_port}"
    files = {"CERTIFICATE": str(own), "CLIENT_CERTIFICATE": str(client), "CLIENT_KEY": str(client)}
    variables = {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in files.items()}
    assert Sender(collector(url, variables)).send(b"spans")
    assert not Sender(collector(url, {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.5"})).send(b"spans")
    assert receiver.bodies == [b"spans"]


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, "http://localhost:4318/v1/traces"),
        ({"ENDPOINT": "http://c:1/"}, "http://c:1/v1/traces"),
        ({"ENDPOINT": "http://c:1/otlp"}, "http://c:1/otlp/v1/traces"),
        ({"ENDPOINT": "http://c:1", "TRACES_ENDPOINT": "http://d:1/own"}, "http://d:1/own"),
        ({"ENDPOINT": "http://c:1", "PROTOCOL": "http/protobuf"}, "http://c:1/v1/traces"),
    ],
)
def test_variables_name_the_collector(variables: dict[str, str], url: str) -> None:
    made = collector(None, {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in variables.items()})
    assert (made.url, made.timeout) == (url, 5.0)


def test_variables_of_traces_come_first() -> None:
    names = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "2.5"}
    assert collector("http://c:1/own", names)[:3] == ("http://c:1/own", {}, 2.5)


def configure(variables: dict[str, str]) -> None:
    limits(variables)
    Sender(collector(None, variables))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("EXPORTER_OTLP_PROTOCOL", "grpc", "'grpc' is not supported; use 'http/protobuf'"),
        ("EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318", "'collector:4318' is not the URL"),
        ("EXPORTER_OTLP_COMPRESSION", "zip", "'zip' must be one of none, gzip, deflate"),
        ("EXPORTER_OTLP_TIMEOUT", "soon", "'soon' must be a number of at least 0.001"),
        ("EXPORTER_OTLP_CERTIFICATE", "/no/such/file", "the files cannot be used"),
        ("BSP_SCHEDULE_DELAY", "-1", "'-1' must be a number of at least 1"),
    ],
)
def test_wrong_variable_is_named(name: str, value: str, message: str) -> None:
    variables = {f"OTEL_{name}": value}
    with pytest.raises(dt.ConfigError, match=f"^OTEL_{name}.*{message}"):
        configure(variables)


def test_limits_of_the_queue_are_variables() -> None:
    assert limits({}) == ExportLimits(8_192, 2_048, 5.0)
    names = {
        "OTEL_BSP_MAX_QUEUE_SIZE": "100",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "500",
        "OTEL_BSP_SCHEDULE_DELAY": "250",
    }
    assert limits(names) == ExportLimits(100, 100, 0.25)


FORKING = """
import os, sys, duetime as dt, asyncio
app = dt.App("memory://", traces=sys.argv[1])

@app.task("work")
async def work() -> None: ...

async def main() -> None:
    async with app.running():
        await (await work.submit()).wait(raise_on_failure=True)

with app.tracer.request("in the parent", None, {}):
    pass
child = os.fork()
asyncio.run(main())
if child:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_forked_process_exports_its_own_spans() -> None:
    """As the processes of a web server that forks after it has loaded the app."""
    with OtlpReceiver() as receiver:
        environment = {**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "60000"}
        line = [sys.executable, "-c", FORKING, receiver.url]
        subprocess.run(line, env=environment, check=True, timeout=120)
        names = sorted(span.name for span in receiver.spans)
    assert names == ["in the parent", *["process default"] * 2, *["send default"] * 2]

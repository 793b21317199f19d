"""A receiver of OpenTelemetry traces: an HTTP server on a free port that decodes OTLP requests in protobuf."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

TIMEOUT = 60.0  # seconds
KINDS = {2: "server", 3: "client", 4: "producer", 5: "consumer", 1: "internal"}


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    trace: str
    id: str
    parent: str
    name: str
    kind: str
    attributes: dict[str, Any]
    links: list[tuple[str, str]]  # trace and span
    failed: bool
    events: list[str]
    state: str
    process: str
    scope: str  # the library that made it
    resource: dict[str, Any] = field(repr=False)


class OtlpReceiver:
    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.headers: list[dict[str, str]] = []  # of every request, with names in lower case
        self.refusals = 0  # so many requests are answered with 503 first
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces", self.path
                assert self.headers["Content-Type"] == "application/x-protobuf"
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                if receiver.refusals > 0:
                    receiver.refusals -= 1
                    self.send_response(503)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.spans.extend(_decoded(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def wait_for(self, found: Callable[[list[ReceivedSpan]], Any]) -> Any:
        """What this finds in the spans, once it finds something."""
        deadline = time.monotonic() + TIMEOUT
        while not (result := found(list(self.spans))):
            assert time.monotonic() < deadline, f"not received: {[span.name for span in self.spans]}"
            time.sleep(0.02)
        return result

    def __enter__(self) -> OtlpReceiver:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _decoded(body: bytes) -> list[ReceivedSpan]:
    request: Any = ExportTraceServiceRequest()
    request.ParseFromString(body)
    found = []
    for part in request.resource_spans:
        resource = _attributes(part.resource.attributes)
        for scope in part.scope_spans:
            found += [
                ReceivedSpan(
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.name,
                    KINDS[span.kind],
                    _attributes(span.attributes),
                    [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
                    span.status.code == 2,
                    [event.name for event in span.events],
                    span.trace_state,
                    resource.get("service.instance.id", ""),
                    scope.scope.name,
                    resource,
                )
                for span in scope.spans
            ]
    return found


def _attributes(rows: Any) -> dict[str, Any]:
    return {row.key: getattr(row.value, row.value.WhichOneof("value")) for row in rows}

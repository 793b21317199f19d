"""A real HTTP server on a thread that keeps what it gets and answers as it is told."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes
    at: float  # monotonic

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """`answers`: status codes for the next requests; then 200."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._keep(b"")

            def do_POST(self) -> None:
                self._keep(self.rfile.read(int(self.headers.get("Content-Length", 0))))

            def _keep(self, body: bytes) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append(Received(self.path, headers, body, time.monotonic()))
                self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

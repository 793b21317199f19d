"""An HTTP agent to call while trying: answers every request with 200 and what it got, and prints it.
`/status/503` answers with that status. Standard library only."""

from __future__ import annotations

import json
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY = 1_000_000  # bytes


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        length = min(int(self.headers.get("content-length") or 0), MAX_BODY)
        body = self.rfile.read(length).decode("utf-8", "replace")
        shown = {
            name.lower(): value for name, value in self.headers.items() if name.lower().startswith("duetime-")
        }
        text = json.dumps({"method": self.command, "path": self.path, "headers": shown, "body": body})
        last = self.path.rpartition("/")[2]
        answer = text.encode()
        self.send_response(int(last) if "/status/" in self.path and last.isdigit() else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)
        if shown:  # not health checks
            print(text, flush=True)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        """The line above is enough."""


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Agent).serve_forever()

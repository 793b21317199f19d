"""Sends requests of OTLP to a collector, in the thread that exports. A request that may succeed later is
repeated until its time is over."""

from __future__ import annotations

import gzip
import logging
import ssl
import threading
import zlib
from collections.abc import Callable
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, Request, build_opener

from duetime.clock import monotonic_micros, noise, wall_micros
from duetime.errors import ConfigError
from duetime.model.instant import SECOND, Micros
from duetime.observers.traces.variables import Collector
from duetime.version import VERSION

FIRST_BACKOFF, MAX_BACKOFF = SECOND // 2, 8 * SECOND
REPEATED = frozenset({429, 502, 503, 504})  # statuses, as the specification of OTLP says
MAX_REASON = 300  # bytes of a response that are logged
ENCODERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
log = logging.getLogger("duetime.traces")


class Sender:
    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._opener = build_opener(HTTPSHandler(context=_tls(collector)))
        self._headers = {
            "content-type": "application/x-protobuf",
            "user-agent": f"duetime/{VERSION}",
            **collector.headers,
        }
        self._encode = ENCODERS.get(collector.compression)
        if self._encode is not None:
            self._headers["content-encoding"] = collector.compression
        self._pause = threading.Event()  # never set: it waits

    def send(self, data: bytes) -> bool:
        """Whether the collector has taken it. Logs why it has not."""
        body = data if self._encode is None else self._encode(data)
        deadline = monotonic_micros() + round(self._collector.timeout * SECOND)
        backoff = FIRST_BACKOFF
        while True:
            problem, wait = self._post(body, deadline - monotonic_micros())
            if problem is None:
                return True
            if wait is None or monotonic_micros() + (wait := wait or _spread(backoff)) >= deadline:
                log.warning("traces: spans not exported to %s: %s", self._collector.url, problem)
                return False
            self._pause.wait(wait / SECOND)
            backoff = min(2 * backoff, MAX_BACKOFF)

    def _post(self, body: bytes, within: Micros) -> tuple[str | None, Micros | None]:
        """What went wrong, and the time to wait until it is repeated: 0: any, None: it is not repeated."""
        request = Request(self._collector.url, body, self._headers)  # noqa: S310  the URL is a setting
        try:
            with self._opener.open(request, timeout=max(within, 1) / SECOND) as response:
                response.read()
            return None, None
        except HTTPError as refused:
            with refused:
                reason = refused.read(MAX_REASON).decode("utf-8", "replace").strip()
                wait = _retry_after(refused.headers) if refused.code in REPEATED else None
                return f"HTTP {refused.code} {reason}".strip(), wait
        except (OSError, HTTPException) as problem:  # no connection, or a broken one
            return str(problem) or type(problem).__name__, 0


def _spread(backoff: Micros) -> Micros:
    return round(backoff * (0.8 + 0.4 * noise()))


def _retry_after(headers: Message) -> Micros:
    """0: the collector does not say."""
    text = (headers.get("retry-after") or "").strip()
    if text.isdecimal():
        return int(text) * SECOND
    try:
        return max(0, round(parsedate_to_datetime(text).timestamp() * SECOND) - wall_micros())
    except (ValueError, OverflowError):
        return 0


def _tls(collector: Collector) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=collector.certificate)
        if collector.client_certificate is not None:
            context.load_cert_chain(collector.client_certificate, collector.client_key)
    except (OSError, ssl.SSLError) as problem:
        raise ConfigError(
            "OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_CERTIFICATE, _CLIENT_KEY: "
            f"the files cannot be used: {problem}"
        ) from None
    return context

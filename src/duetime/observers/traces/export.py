"""Sends spans to the collector, as the exporter of OpenTelemetry's SDK does: with its variables, retries and
time limits. Only the bytes of Duetime's own spans are ready."""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, TraceFlags

from duetime.observers.traces.otlp import request_bytes
from duetime.version import VERSION

SCOPE = "duetime"
EXPORT_TIMEOUT = 5  # seconds
TIMEOUT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
TRACES_PATH = "/v1/traces"


class EncodedSpan(bytes):
    """A span that has ended, in OTLP. Bytes, not the span: those would keep their jobs, and be looked at by
    the garbage collector, until they are exported."""

    __slots__ = ()
    context = SpanContext(1, 1, False, TraceFlags(TraceFlags.SAMPLED))  # for the SDK's queue: it is sampled


class SpanExporter(OTLPSpanExporter):
    def __init__(self, url: str | None, resource: Resource) -> None:
        super().__init__(
            endpoint=None if url is None else endpoint_of(url),
            timeout=None if any(os.environ.get(name) for name in TIMEOUT_VARIABLES) else EXPORT_TIMEOUT,
        )
        [part] = encode_spans([_nameless(resource)]).resource_spans
        self._resource = part.resource.SerializeToString()
        self._scope = part.scope_spans[0].scope.SerializeToString()
        self._schema_url = part.schema_url

    @property
    def takes_bytes(self) -> bool:
        """The part of the SDK that sends bytes is not public. A version without it gets spans of its own."""
        return hasattr(getattr(self, "_client", None), "export")

    def encoded(self, spans: list[bytes]) -> bytes:
        return request_bytes(self._resource, self._scope, self._schema_url, spans)

    def export(self, spans: Sequence[ReadableSpan | EncodedSpan]) -> SpanExportResult:
        own: list[bytes] = [span for span in spans if isinstance(span, EncodedSpan)]
        others = [span for span in spans if isinstance(span, ReadableSpan)]
        if not own:
            return super().export(others)
        data = self.encoded(own)
        if others:
            data += encode_spans(others).SerializePartialToString()
        is_sent = self._client.export(data).success
        return SpanExportResult.SUCCESS if is_sent else SpanExportResult.FAILURE


def endpoint_of(url: str) -> str:
    """The collector's address for traces; a path of one's own is left as it is."""
    parts = urlsplit(url)
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{TRACES_PATH}"


def _nameless(resource: Resource) -> ReadableSpan:
    """Shows how the SDK encodes what is the same in all spans."""
    scope = InstrumentationScope(SCOPE, VERSION)
    return ReadableSpan("", api.INVALID_SPAN_CONTEXT, resource=resource, instrumentation_scope=scope)

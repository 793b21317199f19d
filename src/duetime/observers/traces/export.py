"""Makes requests of OTLP of spans: Duetime's own, and those of OpenTelemetry's SDK."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from duetime.observers.traces.otlp import request_bytes
from duetime.observers.traces.sender import Sender
from duetime.observers.traces.shapes import EndedSpan, encode_first
from duetime.version import VERSION

SCOPE = "duetime"


class Envelope:
    """What is the same in all spans of a process, as the SDK encodes it."""

    def __init__(self, resource: Resource) -> None:
        scope = InstrumentationScope(SCOPE, VERSION)
        nameless = ReadableSpan("", api.INVALID_SPAN_CONTEXT, resource=resource, instrumentation_scope=scope)
        [part] = encode_spans([nameless]).resource_spans
        self._resource = part.resource.SerializeToString()
        self._scope = part.scope_spans[0].scope.SerializeToString()
        self._schema_url = part.schema_url

    def around(self, spans: Iterable[EndedSpan]) -> bytes:
        encoded = [span if isinstance(span, bytes) else encode_first(*span) for span in spans]
        return request_bytes(self._resource, self._scope, self._schema_url, encoded)


class Exporter:
    def __init__(self, resource: Resource, sender: Sender) -> None:
        self._envelope = Envelope(resource)
        self._sender = sender

    def export(self, own: Sequence[EndedSpan], others: Sequence[ReadableSpan]) -> None:
        """In one request: requests of OTLP can be joined."""
        data = self._envelope.around(own) if own else b""
        if others:
            data += encode_spans(others).SerializePartialToString()
        self._sender.send(data)

"""The bytes of Duetime's own spans: the official classes read in them what OpenTelemetry's own encoder writes
for an equal span."""

from __future__ import annotations

from uuid import UUID

import pytest
from asyncpg.pgproto import pgproto
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from duetime.model.codec import encode
from duetime.model.job import Claimed
from duetime.model.trace import MAX_CHILD_DELAY, AttemptTrace, SpanId, parent_bytes, with_origin
from duetime.observers.traces.export import Envelope
from duetime.observers.traces.otlp import request_bytes
from duetime.observers.traces.shapes import SpanShape
from duetime.observers.traces.span import AttemptSpan, OwnSpan, span_context
from duetime.version import VERSION
from tests.traces.kept import KeptSpans

SCOPE = InstrumentationScope("duetime", VERSION)
RESOURCES = (
    Resource({"service.name": "duetime", "process.command_args": ("a", "b"), "n": 7, "on": True}),
    Resource({"service.name": "größer"}, "https://opentelemetry.io/schemas/1.30.0"),
)
ENVELOPES = {resource: Envelope(resource) for resource in RESOURCES}
texts = st.text(max_size=300)
values = texts | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
attributes = st.dictionaries(texts.filter(bool), values, max_size=5)
span_ids = st.builds(SpanId, st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1))
instants = st.integers(1, 2**63)  # nanoseconds
job_ids = st.uuids() | st.uuids().map(lambda id: pgproto.UUID(id.bytes))  # of both kinds that stores give


@st.composite
def spans(draw: st.DrawFn) -> OwnSpan:
    shape = SpanShape(draw(texts), draw(st.sampled_from(SpanKind)), draw(attributes))
    own, remote, link = draw(span_ids), draw(st.none() | span_ids), draw(st.none() | span_ids)
    local = None
    if remote is None and draw(st.booleans()):
        parent = draw(span_ids)
        local = SpanContext(parent.trace, parent.span, draw(st.booleans()), TraceFlags(TraceFlags.SAMPLED))
    span = OwnSpan(
        KeptSpans(), shape, AttemptTrace(own, remote, link), True, draw(st.none() | st.uuids()), local
    )
    taken = span.all_attributes
    span.add({name: value for name, value in draw(attributes).items() if name not in taken})
    span.began_at, span.error = draw(instants), draw(st.none() | texts.filter(bool))
    span.ended_at = draw(instants)
    return span


@st.composite
def attempt_spans(draw: st.DrawFn, tracer: KeptSpans) -> AttemptSpan:
    """An ended one, of which no one has asked for anything."""
    policies, origin = draw(st.sampled_from((None, encode({"timeout": "5m"})))), draw(st.none() | span_ids)
    if origin is not None:
        policies = with_origin(policies, origin, draw(st.sampled_from((0, MAX_CHILD_DELAY + 1))))
    attempt, schedule = draw(st.integers(1, 3)), draw(st.none() | texts.filter(bool))
    job_id, queue, target, tenant = draw(job_ids), draw(texts), draw(texts), draw(texts)
    job = Claimed(
        job_id, attempt, target, b"{}", 0, queue, 5, 0, 0, 0, False,
        None, schedule, None, policies, None, None, tenant,
    )  # fmt: skip
    span = AttemptSpan(tracer, job, None if policies is None else parent_bytes(policies))
    if draw(st.booleans()):
        span.fail("Broken", draw(texts))
    span.began_at = draw(instants)
    span.end(draw(instants))
    return span


def equal_span(span: OwnSpan, resource: Resource) -> ReadableSpan:
    parent = span.parent
    error = Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error)
    return ReadableSpan(
        span.shape.name,
        span.get_span_context(),
        span_context(parent) if isinstance(parent, SpanId) else parent,
        resource,
        span.all_attributes,
        (),
        () if span.ids.link is None else (Link(span_context(span.ids.link)),),
        span.shape.kind,
        status=error,
        start_time=span.began_at,
        end_time=span.ended_at,
        instrumentation_scope=SCOPE,
    )


@given(st.lists(spans(), min_size=1, max_size=3), st.sampled_from(RESOURCES))
def test_own_encoding_is_that_of_the_sdk(given_spans: list[OwnSpan], resource: Resource) -> None:
    data = ENVELOPES[resource].around([span.encoded() for span in given_spans])
    made = ExportTraceServiceRequest.FromString(data)
    assert made == encode_spans([equal_span(span, resource) for span in given_spans])


@given(st.data(), st.sampled_from(RESOURCES))
def test_attempt_is_encoded_from_its_job_as_by_the_sdk(data: st.DataObject, resource: Resource) -> None:
    tracer = KeptSpans()
    span = data.draw(attempt_spans(tracer))
    made = ENVELOPES[resource].around(tracer.spans)
    assert ExportTraceServiceRequest.FromString(made) == encode_spans([equal_span(span, resource)])


@given(st.text(st.characters(), max_size=20), st.integers())
def test_any_text_and_number_can_be_encoded(text: str, number: int) -> None:
    """Half of a surrogate pair, or a number of more than 64 bits: the span must not be lost for it."""
    span = OwnSpan(KeptSpans(), SpanShape("a", SpanKind.CLIENT, {}), AttemptTrace(SpanId(1, 1), None, None))
    span.add({"text": text, "number": number, "other": (1, 2)})
    span.fail("E", text)
    made = ExportTraceServiceRequest.FromString(request_bytes(b"", b"", "", [span.encoded()]))
    [row] = made.resource_spans[0].scope_spans[0].spans
    assert [one.key for one in row.attributes] == ["text", "number", "other", "error.type"]
    assert row.attributes[0].value.string_value == text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    "text", ["00000000-0000-0000-0000-000000000000", "01935c2e-7b3a-7000-8000-00000000000f"]
)
def test_message_id_is_the_text_of_the_job_id(text: str) -> None:
    ids = AttemptTrace(SpanId(1, 1), None, None)
    span = OwnSpan(KeptSpans(), SpanShape("a", SpanKind.CLIENT, {}), ids, message=UUID(text))
    made = ExportTraceServiceRequest.FromString(request_bytes(b"", b"", "", [span.encoded()]))
    [row] = made.resource_spans[0].scope_spans[0].spans
    assert [(one.key, one.value.string_value) for one in row.attributes] == [("messaging.message.id", text)]

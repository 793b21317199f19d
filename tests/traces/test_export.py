"""From a span to the collector: what tasks add, the variables of OpenTelemetry, and a collector in trouble."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import duetime as dt
from duetime.version import VERSION
from tests.servers.otlp import OtlpReceiver, ReceivedSpan


async def run_task(
    receiver: OtlpReceiver, fails: bool = False, touches: bool = False
) -> tuple[ReceivedSpan, ReceivedSpan]:
    """The spans of its submission and of its attempt."""
    app = dt.App("memory://", traces=receiver.url)

    @app.task("work", retry=dt.Retry(max_attempts=1))
    async def work() -> None:
        if touches:
            trace.get_current_span().set_attribute("duetime.target", "work")
        if fails:
            raise ValueError("postgresql://anna:s3cret@db")

    async with app.running():
        await (await work.submit()).wait(timeout="60s")

    def of_kind(kind: str) -> ReceivedSpan:
        found: list[ReceivedSpan] = receiver.wait_for(
            lambda spans: [span for span in spans if span.kind == kind]
        )
        assert len(found) == 1
        return found[0]

    return of_kind("producer"), of_kind("consumer")


@pytest.mark.parametrize("is_touched", [False, True])
async def test_spans_are_the_same_if_the_sdk_makes_them(is_touched: bool) -> None:
    """As it does if the task adds something to its span, such as an attribute that it has already."""
    with OtlpReceiver() as receiver:
        sent, attempt = await run_task(receiver, fails=True, touches=is_touched)
    messaging = {"messaging.system": "duetime", "messaging.destination.name": "default"}
    message = {"messaging.message.id": attempt.attributes["messaging.message.id"]}
    operation = ("messaging.operation.name", "messaging.operation.type")
    target = {"duetime.target": "work"}
    assert sent.attributes == {**messaging, **dict.fromkeys(operation, "send"), **target, **message}
    assert attempt.attributes == {
        **messaging,
        **dict.fromkeys(operation, "process"),
        **target,
        **message,
        "duetime.tenant": "default",
        "duetime.attempt": 1,
        "error.type": "ValueError",
    }
    assert (attempt.trace, attempt.parent) == (sent.trace, sent.id)
    assert (sent.failed, attempt.failed) == (False, True)
    assert attempt.resource["service.version"] == VERSION


async def test_task_adds_to_the_span_of_its_attempt() -> None:
    with OtlpReceiver() as receiver:
        app = dt.App("memory://", traces=receiver.url)
        seen: list[Any] = []

        @app.task("work")
        def work() -> None:
            span = trace.get_current_span()
            seen.append(span)
            span.set_attributes({"order": 7, "places": ["a", "b"]})
            span.set_attribute("duetime.target", "mine")
            span.add_event("half way", {"n": 1})
            span.record_exception(ValueError("handled"))
            span.update_name("renamed")
            assert span.is_recording()

        async with app.running():
            job = await work.submit()
            await job.wait(raise_on_failure=True)
        seen[0].set_attribute("too", "late")
        assert not seen[0].is_recording()
        [attempt] = [span for span in receiver.spans if span.kind == "consumer"]
        [sent] = [span for span in receiver.spans if span.kind == "producer"]
    assert (attempt.name, attempt.parent, attempt.events) == ("renamed", sent.id, ["half way", "exception"])
    assert attempt.attributes["messaging.message.id"] == str(job.id)
    assert (attempt.attributes["order"], attempt.attributes["duetime.target"]) == (7, "mine")
    assert "too" not in attempt.attributes


async def test_state_of_the_callers_trace_is_kept() -> None:
    """A span of the program with a tracestate, as another vendor may need it."""
    state = trace.TraceState([("vendor", "1")])
    outer = trace.SpanContext(5, 6, True, trace.TraceFlags(1), state)
    with OtlpReceiver() as receiver:
        app = dt.App("memory://", traces=receiver.url)

        @app.task("work")
        async def work() -> None: ...

        async with app.running():
            with trace.use_span(trace.NonRecordingSpan(outer)):
                job = await work.submit()
            await job.wait(raise_on_failure=True)
        [sent] = [span for span in receiver.spans if span.kind == "producer"]
    assert (sent.trace, sent.parent, sent.state) == (f"{5:032x}", f"{6:016x}", "vendor=1")
    assert sent.attributes["messaging.message.id"] == str(job.id)


async def test_variables_of_opentelemetry_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment=test")
    with OtlpReceiver() as receiver:
        _, attempt = await run_task(receiver)
    assert [(one["x-team"], one["content-encoding"]) for one in receiver.headers] == [("blue", "gzip")]
    assert (attempt.resource["service.name"], attempt.resource["deployment"]) == ("shop", "test")


async def test_export_is_repeated_if_the_collector_is_unavailable() -> None:
    with OtlpReceiver() as receiver:
        receiver.refusals = 1
        _, attempt = await run_task(receiver)
        assert len(receiver.headers) == 2
    assert attempt.attributes["duetime.target"] == "work"


async def test_spans_of_the_program_itself_go_the_same_way() -> None:
    """Those of tasks, that the SDK makes, in one request with Duetime's own."""
    with OtlpReceiver() as receiver:
        app = dt.App("memory://", traces=receiver.url)
        provider: Any = getattr(app.tracer, "provider", None)
        assert isinstance(provider, TracerProvider)

        @app.task("work")
        async def work() -> None:
            with provider.get_tracer("shop").start_as_current_span("step"):
                pass

        async with app.running():
            await (await work.submit()).wait(raise_on_failure=True)
        [step] = [span for span in receiver.spans if span.name == "step"]
        [attempt] = [span for span in receiver.spans if span.kind == "consumer"]
    assert (step.trace, step.parent) == (attempt.trace, attempt.id)
    assert len(receiver.headers) == 1

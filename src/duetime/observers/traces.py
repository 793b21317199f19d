"""Traces by OpenTelemetry: spans of requests, submissions, attempts and calls, exported in batches by a
thread of its own. What does not fit into its queue is dropped: a collector that is away slows down
nothing."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from duetime.clock import monotonic_micros
from duetime.invoker import Context, Handler
from duetime.model.instant import SECOND, Micros
from duetime.model.job import JobDraft
from duetime.model.masking import without_secrets
from duetime.model.settle import Directive, Snooze
from duetime.model.trace import (
    LOWER,
    AttemptTrace,
    SpanId,
    attempt_trace,
    lower_half,
    origin_of,
    with_origin,
)
from duetime.tracing import Span, current
from duetime.version import VERSION

MAX_NEW_TRACES = 100  # that begin in this process in a second: a span costs more than a small task
MAX_QUEUED_SPANS = 8_192
MAX_BATCH = 1_024
EXPORT_TIMEOUT = 5  # seconds
FLUSH_TIMEOUT = 3.0  # seconds at the end of a process
MAX_REASON = 500
NO_PARENT = contexts.Context()
TRACES_PATH = "/v1/traces"


class FixedIds(RandomIdGenerator):
    """Random ids, unless the next span of this thread has to have certain ones."""

    def __init__(self) -> None:
        self._next = threading.local()

    def fix(self, id: SpanId | None) -> None:
        self._next.id = id

    def generate_trace_id(self) -> int:
        fixed: SpanId | None = getattr(self._next, "id", None)
        return super().generate_trace_id() if fixed is None else fixed.trace

    def generate_span_id(self) -> int:
        fixed: SpanId | None = getattr(self._next, "id", None)
        return super().generate_span_id() if fixed is None else fixed.span


class OpenTelemetryTracer:
    def __init__(self, url: str | None, sampling: float = 1.0, instance: str | None = None) -> None:
        """`url`: the address of the collector; None: as the OTEL_* variables say. `sampling`: the share of
        traces that begin here and are exported; a trace of a caller is continued if the caller exports it."""
        own_sampler = "OTEL_TRACES_SAMPLER" not in os.environ
        ratio = TraceIdRatioBased(sampling)
        self._bound = ratio.bound if own_sampler else None  # of the lower half of the ids of exported traces
        self.ids = FixedIds()
        attributes = {"service.version": VERSION}
        if "OTEL_SERVICE_NAME" not in os.environ:
            attributes["service.name"] = "duetime"
        if instance is not None:
            attributes["service.instance.id"] = instance
        self.provider = TracerProvider(
            sampler=ParentBased(ratio) if own_sampler else None,
            resource=Resource.create(attributes),
            id_generator=self.ids,
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(
            endpoint=None if url is None else endpoint_of(url), timeout=EXPORT_TIMEOUT
        )
        self.provider.add_span_processor(
            BatchSpanProcessor(
                exporter,
                max_queue_size=MAX_QUEUED_SPANS,
                max_export_batch_size=MAX_BATCH,
            )
        )
        self._tracer = self.provider.get_tracer("duetime", VERSION)
        self._second, self._begun = 0, 0

    def begins(self, lower: int) -> bool:
        """Whether a trace that begins here, with this lower half of its id, is exported."""
        if self._bound is None:
            return True  # the sampler of the OTEL_* variables decides
        if lower >= self._bound:
            return False
        second = monotonic_micros() // SECOND
        if second != self._second:
            self._second, self._begun = second, 0
        self._begun += 1
        return self._begun <= MAX_NEW_TRACES

    def be_global(self) -> None:
        """Spans that tasks start with `opentelemetry.trace.get_tracer` are exported in the same way, unless
        the program has a provider of its own."""
        if isinstance(api.get_tracer_provider(), api.ProxyTracerProvider):
            api.set_tracer_provider(self.provider)

    @contextmanager
    def request(self, name: str, traceparent: str | None, attributes: Mapping[str, Any]) -> Iterator[Span]:
        caller = SpanId.read(traceparent)
        if caller is None:
            fixed = SpanId(self.ids.generate_trace_id(), self.ids.generate_span_id())
            if not self.begins(fixed.trace & LOWER):
                with self.unsampled(fixed) as span:
                    yield span
                return
            with self.span(name, SpanKind.SERVER, attributes, NO_PARENT, (), fixed) as span:
                yield span
        else:
            with self.span(name, SpanKind.SERVER, attributes, _context_of(caller)) as span:
                yield span

    @contextmanager
    def send(self, drafts: Sequence[JobDraft], now: Micros) -> Iterator[Sequence[JobDraft]]:
        outer = api.get_current_span().get_span_context()
        fixed = None if outer.is_valid else SpanId(self.ids.generate_trace_id(), self.ids.generate_span_id())
        if not (outer.trace_flags.sampled if fixed is None else self.begins(fixed.trace & LOWER)):
            yield drafts
            return
        queue = drafts[0].queue if drafts else ""
        attributes: dict[str, Any] = {
            **_messaging(queue, "send", "send"),
            "duetime.target": drafts[0].target if drafts else "",
        }
        if len(drafts) == 1:
            attributes["messaging.message.id"] = str(drafts[0].id)
        else:
            attributes["messaging.batch.message_count"] = len(drafts)
        with self.span(f"send {queue}", SpanKind.PRODUCER, attributes, None, (), fixed) as span:
            own = span.id
            yield (
                [
                    draft._replace(policies=with_origin(draft.policies, own, draft.due_at - now))
                    for draft in drafts
                ]
                if own.sampled
                else drafts
            )

    def handlers(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        return {name: TracedHandler(name, handler, self) for name, handler in handlers.items()}

    async def flush(self) -> None:
        """On a thread that nothing waits for: the exporter may hang."""
        done, loop = asyncio.Event(), asyncio.get_running_loop()

        def flush() -> None:
            self.provider.force_flush(int(FLUSH_TIMEOUT * 1_000))
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=flush, name="duetime-traces", daemon=True).start()
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await done.wait()
        except TimeoutError:
            return

    @contextmanager
    def unsampled(self, id: SpanId) -> Iterator[OpenTelemetrySpan]:
        """Others are told not to export their part of the trace either."""
        own = id._replace(sampled=False)
        span = OpenTelemetrySpan(self, NonRecordingSpan(_span_context(own)))
        before, outer = current.set(span), contexts.attach(_context_of(own))
        try:
            yield span
        finally:
            contexts.detach(outer)
            current.reset(before)

    @contextmanager
    def span(
        self,
        name: str,
        kind: SpanKind,
        attributes: Mapping[str, Any],
        parent: contexts.Context | None = None,
        links: Sequence[Link] = (),
        fixed: SpanId | None = None,
    ) -> Iterator[OpenTelemetrySpan]:
        """A span that is the current one. An error that leaves the block is the span's error."""
        self.ids.fix(fixed)
        try:
            inner = self._tracer.start_span(name, parent, kind, attributes, links, record_exception=False)
        finally:
            self.ids.fix(None)
        span = OpenTelemetrySpan(self, inner)
        outer = contexts.attach(api.set_span_in_context(inner, parent))
        before = current.set(span)
        try:
            yield span
        except BaseException as problem:
            if not isinstance(problem, Snooze):
                span.fail(type(problem).__qualname__, str(problem))
            raise
        finally:
            current.reset(before)
            contexts.detach(outer)
            inner.end()


class OpenTelemetrySpan:
    __slots__ = ("_inner", "_tracer")

    def __init__(self, tracer: OpenTelemetryTracer, inner: api.Span) -> None:
        self._tracer = tracer
        self._inner = inner

    @property
    def id(self) -> SpanId:
        own = self._inner.get_span_context()
        return SpanId(own.trace_id, own.span_id, own.trace_flags.sampled)

    def note(self, **attributes: Any) -> None:
        self._inner.set_attributes({name.replace("__", "."): value for name, value in attributes.items()})

    def rename(self, name: str) -> None:
        self._inner.update_name(name)

    def fail(self, kind: str, reason: str = "") -> None:
        self._inner.set_attribute("error.type", kind)
        last = without_secrets(reason.strip().rpartition("\n")[2])[:MAX_REASON]
        self._inner.set_status(Status(StatusCode.ERROR, last or kind))

    def call(self, name: str, attributes: Mapping[str, Any]) -> Any:
        return self._tracer.span(name, SpanKind.CLIENT, attributes)

    def publish(self, name: str, attributes: Mapping[str, Any]) -> Any:
        return self._tracer.span(name, SpanKind.PRODUCER, attributes)


class TracedHandler:
    """A handler whose attempts have spans, if they are sampled."""

    def __init__(self, name: str, handler: Handler, tracer: OpenTelemetryTracer) -> None:
        self.policies = handler.policies
        self.limit = handler.limit
        self.keeps_output = getattr(handler, "keeps_output", True)
        self._calls_out = name.startswith("@")
        self._handler = handler
        self._tracer = tracer

    def invoke(self, context: Context, payload: bytes) -> Any:
        job = context.job
        origin = None if job.policies is None else origin_of(job.policies)
        child = origin is not None and not origin.linked and job.attempt == 1
        if not child and not self._tracer.begins(lower_half(job.id, origin)):
            if self._calls_out:
                return self._unsampled(context, payload)
            return self._handler.invoke(context, payload)
        return self._traced(context, payload, attempt_trace(job.id, job.attempt, job.policies))

    async def _traced(self, context: Context, payload: bytes, ids: AttemptTrace) -> Any:
        job = context.job
        attributes = {
            **_messaging(job.queue, "process", "process"),
            "messaging.message.id": str(job.id),
            "duetime.target": job.target,
            "duetime.tenant": job.tenant,
            "duetime.attempt": job.attempt,
        }
        if job.schedule is not None:
            attributes["duetime.schedule"] = job.schedule
        parent = NO_PARENT if ids.parent is None else _context_of(ids.parent)
        links = () if ids.link is None else (Link(_span_context(ids.link)),)
        with self._tracer.span(
            f"process {job.queue}", SpanKind.CONSUMER, attributes, parent, links, ids.id
        ) as span:
            result = await self._handler.invoke(context, payload)
            if isinstance(result, Directive) and not isinstance(result, Snooze):
                span.fail(type(result).__name__, str(result))
            return result

    async def _unsampled(self, context: Context, payload: bytes) -> Any:
        job = context.job
        with self._tracer.unsampled(attempt_trace(job.id, job.attempt, job.policies).id):
            return await self._handler.invoke(context, payload)


def endpoint_of(url: str) -> str:
    """The collector's address for traces; a path of one's own is left as it is."""
    parts = urlsplit(url)
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{TRACES_PATH}"


def _messaging(queue: str, name: str, kind: str) -> dict[str, Any]:
    """The semantic conventions for messaging: a job is a message, its queue the destination."""
    return {
        "messaging.system": "duetime",
        "messaging.destination.name": queue,
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
    }


def _context_of(span: SpanId) -> contexts.Context:
    return api.set_span_in_context(NonRecordingSpan(_span_context(span)), NO_PARENT)


def _span_context(span: SpanId) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if span.sampled else TraceFlags.DEFAULT)
    return SpanContext(span.trace, span.span, is_remote=True, trace_flags=flags)

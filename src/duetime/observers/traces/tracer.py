"""The tracer: spans of requests, submissions, attempts and calls. What does not fit into the queue of its
exporter is dropped: a collector that is away slows down nothing."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import UUID

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, TraceIdRatioBased
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

from duetime.invoker import Handler
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.model.trace import AttemptTrace, SpanId, submission_trace, with_origin
from duetime.observers.traces import variables
from duetime.observers.traces.attempts import TracedHandler
from duetime.observers.traces.export import SCOPE, Exporter
from duetime.observers.traces.queue import SpanQueue
from duetime.observers.traces.sampling import Sampling, context_of
from duetime.observers.traces.sender import Sender
from duetime.observers.traces.shapes import EndedSpan, SpanShape, send_shape
from duetime.observers.traces.span import NO_PARENT, OwnSpan, Parent, span_context
from duetime.version import VERSION

FLUSH_TIMEOUT = 3.0  # seconds at the end of a process


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
        has_sampler = "OTEL_TRACES_SAMPLER" in os.environ
        resource = _resource(instance)
        exporter = Exporter(resource, Sender(variables.collector(url, os.environ)))
        self._queue = SpanQueue(exporter.export, variables.limits(os.environ))
        self.ended: Callable[[EndedSpan], None] = self._queue.add
        self._ids = FixedIds()
        # Of spans that tasks start, and of our own that tasks add something to.
        self.provider = TracerProvider(
            sampler=None if has_sampler else ParentBased(TraceIdRatioBased(sampling)),
            resource=resource,
            shutdown_on_exit=False,
        )
        self.provider.add_span_processor(self._queue)
        full = TracerProvider(
            sampler=ALWAYS_ON, resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        full.add_span_processor(self._queue)
        self._full_spans = full.get_tracer(SCOPE, VERSION)
        self._sampling = Sampling(sampling, self.provider.sampler if has_sampler else None)

    def be_global(self) -> None:
        """Spans that tasks start with `opentelemetry.trace.get_tracer` are exported in the same way, unless
        the program has a provider of its own."""
        if isinstance(api.get_tracer_provider(), api.ProxyTracerProvider):
            api.set_tracer_provider(self.provider)

    def request(
        self, name: str, traceparent: str | None, attributes: Mapping[str, Any]
    ) -> AbstractContextManager[OwnSpan]:
        """If a request begins a trace and submits a job, the job decides whether both are exported."""
        shape = SpanShape(name, SpanKind.SERVER, {})
        caller = SpanId.read(traceparent)
        if caller is not None:
            span = self._below(span_context(caller), shape)
        else:
            own = SpanId(self._ids.generate_trace_id(), self._ids.generate_span_id())
            is_sampled = self._sampling.begins(own.trace, shape)
            span = OwnSpan(self, shape, AttemptTrace(own, None, None), is_sampled)
            span.begins_request = True
        span.add(attributes)
        return span.active()

    @contextmanager
    def send(self, drafts: Sequence[JobDraft], now: Micros) -> Iterator[Sequence[JobDraft]]:
        traced, outer = self._traced(drafts)
        if not traced:
            yield drafts
            return
        first = traced[0]
        shape = send_shape(drafts[0].queue, drafts[0].target)
        message = first.id if len(drafts) == 1 else None
        span = (
            OwnSpan(self, shape, AttemptTrace(submission_trace(first.id), None, None), message=message)
            if outer is None
            else self._below(outer, shape, message)
        )
        if message is None:
            span.note(messaging__batch__message_count=len(drafts))
        with span.active(contexts.get_current()):
            if not span.is_sampled:
                yield drafts
            elif len(traced) == len(drafts):
                yield [_sent(draft, span.id, now) for draft in drafts]
            else:
                chosen = {draft.id for draft in traced}
                yield [_sent(draft, span.id, now) if draft.id in chosen else draft for draft in drafts]

    def _traced(self, drafts: Sequence[JobDraft]) -> tuple[Sequence[JobDraft], SpanContext | None]:
        """The jobs that are traced because of their ids or of the caller, and the caller's span."""
        caller = api.get_current_span()
        undecided = isinstance(caller, OwnSpan) and caller.is_undecided
        if not undecided:
            outer = caller.get_span_context()
            if outer.is_valid:
                return drafts if outer.trace_flags.sampled else (), outer
        chosen = [draft for draft in drafts if self._sampling.of_job(draft)]
        if isinstance(caller, OwnSpan) and undecided:
            caller.is_sampled = bool(chosen)
            return chosen, caller.get_span_context()
        return chosen, None

    def handlers(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        return {
            name: TracedHandler(name, handler, self, self._sampling) for name, handler in handlers.items()
        }

    async def flush(self) -> None:
        """Not for long: the collector may hang."""
        done, loop = asyncio.Event(), asyncio.get_running_loop()

        def flushed() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        self._queue.flush(flushed)
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await done.wait()
        except TimeoutError:
            return

    def child(
        self, name: str, kind: SpanKind, attributes: Mapping[str, Any]
    ) -> AbstractContextManager[OwnSpan]:
        outer = api.get_current_span().get_span_context()
        span = self._below(outer, SpanShape(name, kind, {}))
        span.add(attributes)
        return span.active(contexts.get_current())

    def full(self, span: OwnSpan) -> api.Span:
        self._ids.fix(span.id)
        try:
            full = self._full_spans.start_span(
                span.shape.name,
                _parent(span.parent),
                span.shape.kind,
                span.all_attributes,
                () if span.ids.link is None else (Link(span_context(span.ids.link)),),
                span.began_at,
                record_exception=False,
            )
        finally:
            self._ids.fix(None)
        if span.error is not None:
            full.set_status(Status(StatusCode.ERROR, span.error))
        return full

    def _below(self, parent: SpanContext, shape: SpanShape, message: UUID | None = None) -> OwnSpan:
        own = SpanId(parent.trace_id, self._ids.generate_span_id())
        is_sampled = self._sampling.continues(parent, shape)
        return OwnSpan(self, shape, AttemptTrace(own, None, None), is_sampled, message, parent)


def _parent(parent: Parent) -> contexts.Context:
    if parent is None:
        return NO_PARENT
    return context_of(span_context(parent) if isinstance(parent, SpanId) else parent)


def _resource(instance: str | None) -> Resource:
    attributes = {"service.version": VERSION}
    if "OTEL_SERVICE_NAME" not in os.environ:
        attributes["service.name"] = "duetime"
    if instance is not None:
        attributes["service.instance.id"] = instance
    return Resource.create(attributes)


def _sent(draft: JobDraft, span: SpanId, now: Micros) -> JobDraft:
    return draft._replace(policies=with_origin(draft.policies, span, draft.due_at - now))

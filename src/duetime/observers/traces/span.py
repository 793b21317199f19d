"""A span of Duetime itself. It costs a tenth of one of OpenTelemetry's SDK, which costs more than a small
job: what only the collector needs is computed at its end. To tasks it is the current span of OpenTelemetry,
with all that such a span can do."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType, TracebackType
from typing import Any, Protocol, cast
from uuid import UUID

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util import types

from duetime.clock import wall_nanos
from duetime.model.job import Claimed
from duetime.model.masking import without_secrets
from duetime.model.settle import Snooze
from duetime.model.trace import (
    AttemptTrace,
    SpanId,
    attempt_trace,
)
from duetime.observers.traces.otlp import MESSAGE_ID_NAME, span_bytes
from duetime.observers.traces.shapes import EndedSpan, SpanShape, attempt_shape
from duetime.tracing import find_spans_by

MAX_REASON = 500
Parent = SpanId | SpanContext | None  # an id is that of a span in another process
NO_PARENT = contexts.Context()
[CURRENT_SPAN] = api.set_span_in_context(api.INVALID_SPAN, NO_PARENT)  # the name in a context
# The innermost span of Duetime; the current one may be a task's own.
OWN_SPAN = contexts.create_key("duetime-span")


class Spans(Protocol):
    """What a span needs of its tracer."""

    def ended(self, span: EndedSpan, /) -> None: ...

    def full(self, span: OwnSpan) -> api.Span:
        """The same span, made by the SDK."""
        ...

    def child(
        self, name: str, kind: SpanKind, attributes: Mapping[str, Any]
    ) -> AbstractContextManager[OwnSpan]: ...


class OwnSpan(api.Span):
    """Duetime's `Span` and OpenTelemetry's. A task that adds something to its span, such as an event, makes a
    span of the SDK of it: the SDK knows the limits and the rules for that."""

    # What most spans do not change costs nothing as a default of the class.
    is_sampled = True
    begins_request = False  # a request that begins a trace
    message: UUID | None = None  # the job of a submission or an attempt
    attributes: Mapping[str, Any] = MappingProxyType({})  # that are not in the shape
    error: str | None = None
    ended_at = 0  # nanoseconds, as OpenTelemetry has them; so is `began_at`
    _context: SpanContext | None = None
    _full: api.Span | None = None
    _parent: SpanContext | None = None  # if it is not one of the ids

    def __init__(
        self,
        tracer: Spans,
        shape: SpanShape,
        ids: AttemptTrace,
        is_sampled: bool = True,
        message: UUID | None = None,
        parent: SpanContext | None = None,
    ) -> None:
        self.began_at = wall_nanos()
        self.shape = shape
        self.ids = ids
        self.is_sampled = is_sampled
        self.message = message
        self._tracer = tracer
        self._parent = parent
        if parent is not None and parent.trace_state:
            self.full()

    def active(self, base: contexts.Context = NO_PARENT) -> Active:
        """Within the block this is the current span. `base`: the other values of the context."""
        return Active(self, base)

    # Of Duetime

    @property
    def id(self) -> SpanId:
        own = self.ids.id
        return own if own.sampled is self.is_sampled else own._replace(sampled=self.is_sampled)

    @property
    def parent(self) -> Parent:
        return self.ids.parent if self._parent is None else self._parent

    def note(self, **attributes: Any) -> None:
        self.add({name.replace("__", "."): value for name, value in attributes.items()})

    def add(self, attributes: Mapping[str, Any]) -> None:
        if self._full is not None:
            self._full.set_attributes(attributes)
        elif not self.ended_at:
            self.attributes = {**self.attributes, **attributes}

    def rename(self, name: str) -> None:
        if self._full is not None:
            self._full.update_name(name)
        else:
            self.shape = SpanShape(name, self.shape.kind, self.shape.attributes)

    def fail(self, kind: str, reason: str = "") -> None:
        last = without_secrets(reason.strip().rpartition("\n")[2])[:MAX_REASON]
        self.add({"error.type": kind})
        self.error = last or kind
        if self._full is not None:
            self._full.set_status(Status(StatusCode.ERROR, self.error))

    def fail_by(self, problem: BaseException) -> None:
        if not isinstance(problem, Snooze):
            self.fail(type(problem).__qualname__, str(problem))

    def call(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[OwnSpan]:
        return self._tracer.child(name, SpanKind.CLIENT, attributes)

    def publish(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[OwnSpan]:
        return self._tracer.child(name, SpanKind.PRODUCER, attributes)

    @property
    def is_undecided(self) -> bool:
        """Whether a job may still decide if this request is exported: no one has seen its context."""
        return self.begins_request and self._context is None

    # Its end

    def end(self, end_time: int | None = None) -> None:
        if self.ended_at:
            return
        self.ended_at = wall_nanos() if end_time is None else end_time
        if self._full is not None:
            self._full.end(self.ended_at)
        elif self.is_sampled:
            self._tracer.ended(self.encoded())

    def encoded(self) -> bytes:
        """Once it has ended: until it is exported only these bytes are kept, not the job with its payload."""
        above, is_remote = None, False
        parent = self.parent
        if isinstance(parent, SpanId):
            above, is_remote = parent.span, True
        elif parent is not None:
            above, is_remote = parent.span_id, parent.is_remote
        return span_bytes(
            self.ids.id.trace.to_bytes(16, "big"),
            self.ids.id.span,
            self.shape.encoded,
            self.began_at,
            self.ended_at,
            self.message,
            self.attributes,
            None if above is None else above.to_bytes(8, "big"),
            is_remote,
            self.ids.link,
            self.error,
        )

    def full(self) -> api.Span:
        if self._full is None:
            own = self.get_span_context()
            self._full = self._tracer.full(self) if self.is_recording() else NonRecordingSpan(own)
        return self._full

    @property
    def all_attributes(self) -> dict[str, Any]:
        shape = self.shape.attributes
        named = {} if self.message is None else {MESSAGE_ID_NAME: str(self.message)}
        return {**shape, **named, **self.attributes}

    # Of OpenTelemetry

    def get_span_context(self) -> SpanContext:
        if self._context is None:
            self._context = span_context(self.id, is_remote=False)
        return self._context

    def is_recording(self) -> bool:
        return self.is_sampled and not self.ended_at

    def set_attribute(self, key: str, value: types.AttributeValue) -> None:
        self.full().set_attribute(key, value)

    def set_attributes(self, attributes: Mapping[str, types.AttributeValue]) -> None:
        self.full().set_attributes(attributes)

    def add_event(self, name: str, attributes: types.Attributes = None, timestamp: int | None = None) -> None:
        self.full().add_event(name, attributes, timestamp)

    def add_link(self, context: SpanContext, attributes: types.Attributes = None) -> None:
        self.full().add_link(context, attributes)

    def update_name(self, name: str) -> None:
        self.full().update_name(name)

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        self.full().set_status(status, description)

    def record_exception(
        self,
        exception: BaseException,
        attributes: types.Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        self.full().record_exception(exception, attributes, timestamp, escaped)


class Computed:
    """An attribute that is computed when it is needed. Not by `__getattr__`, with which all attributes are
    slow."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, span: AttemptSpan, owner: type) -> Any:
        span.compute()
        return span.__dict__[self._name]


class AttemptSpan(OwnSpan):
    """All about it follows from the job, and is computed if it is needed."""

    ids: Any = Computed()
    shape: Any = Computed()

    def __init__(
        self, tracer: Spans, job: Claimed, parent: tuple[bytes, bytes] | None, is_sampled: bool = True
    ) -> None:
        """`parent`: as `parent_bytes` of the job's policies."""
        self.began_at = wall_nanos()
        self._tracer = tracer
        self._job = job
        self._only_parent = parent if is_sampled else None  # None: there is more to say
        if not is_sampled:
            self.is_sampled = False

    def compute(self) -> None:
        """The shape and the ids, and with them the rest."""
        job = self._job
        self.message = job.id
        self.ids = attempt_trace(job.id, job.attempt, job.policies)
        self.shape = attempt_shape(job.queue, job.target, job.tenant, job.attempt)
        if job.schedule is not None:
            self.attributes = {"duetime.schedule": job.schedule, **self.attributes}

    def rename(self, name: str) -> None:
        self.update_name(name)

    def add(self, attributes: Mapping[str, Any]) -> None:
        self._only_parent = None
        super().add(attributes)

    def full(self) -> api.Span:
        self._only_parent = None
        return super().full()

    def end(self, end_time: int | None = None) -> None:
        job, parent = self._job, self._only_parent
        if parent is None or job.attempt != 1 or job.schedule is not None:
            super().end(end_time)
            return
        self._only_parent = None
        self.ended_at = ended_at = wall_nanos() if end_time is None else end_time
        # Most spans. The thread that exports them encodes many in a row, at half the price.
        self._tracer.ended((job.queue, job.target, job.tenant, parent, job.id, self.began_at, ended_at))


class Active:
    """A span while it is the current one. An error that leaves the block is the span's error."""

    __slots__ = ("_base", "_outer", "_span")

    def __init__(self, span: OwnSpan, base: contexts.Context) -> None:
        self._span = span
        self._base = base

    def __enter__(self) -> OwnSpan:
        span = self._span
        self._outer = contexts.attach(contexts.Context({**self._base, CURRENT_SPAN: span, OWN_SPAN: span}))
        return span

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _: TracebackType | None
    ) -> None:
        contexts.detach(self._outer)
        if problem is not None:
            self._span.fail_by(problem)
        self._span.end()


def _own_span() -> OwnSpan | None:
    return cast("OwnSpan | None", contexts.get_value(OWN_SPAN))


find_spans_by(_own_span)


def span_context(span: SpanId, is_remote: bool = True) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if span.sampled else TraceFlags.DEFAULT)
    return SpanContext(span.trace, span.span, is_remote, flags)

"""Which traces are exported. A job decides by its id: its submission and all its attempts agree, in every
process, and nothing is stored for it. A caller that exports its trace decides for its jobs."""

from __future__ import annotations

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.sdk.trace.sampling import Decision, Sampler, TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan, SpanContext

from duetime.model.job import Claimed, JobDraft
from duetime.model.trace import LOWER, attempt_trace, has_origin, lower_half, root_trace_id
from duetime.observers.traces.shapes import SpanShape, attempt_shape
from duetime.observers.traces.span import NO_PARENT, span_context


class Sampling:
    def __init__(self, share: float, sampler: Sampler | None) -> None:
        """`sampler`: that of the OTEL_* variables, if they name one; it is asked instead."""
        self.bound: int = TraceIdRatioBased(share).bound  # of the lower half of the ids of exported traces
        self.asks = sampler is not None
        self._sampler = sampler

    def begins(self, trace: int, shape: SpanShape) -> bool:
        """Whether a trace that begins here is exported."""
        if self._sampler is None:
            return trace & LOWER < self.bound
        return self._ask(NO_PARENT, trace, shape)

    def continues(self, parent: SpanContext, shape: SpanShape) -> bool:
        if self._sampler is None:
            return parent.trace_flags.sampled
        return self._ask(context_of(parent), parent.trace_id, shape)

    def of_job(self, job: JobDraft) -> bool:
        """Of a new job without a caller that is traced. Its attempts are decided about in the same way."""
        if self._sampler is None:
            return lower_half(job.id) < self.bound
        return self._ask(
            NO_PARENT, root_trace_id(job.id, 1), attempt_shape(job.queue, job.target, job.tenant, 1)
        )

    def of_attempt(self, job: Claimed) -> bool:
        if self._sampler is None:
            return has_origin(job.policies) or lower_half(job.id) < self.bound
        shape = attempt_shape(job.queue, job.target, job.tenant, job.attempt)
        own = attempt_trace(job.id, job.attempt, job.policies)
        if own.parent is None:
            return self._ask(NO_PARENT, own.id.trace, shape)
        return self.continues(span_context(own.parent), shape)

    def _ask(self, parent: contexts.Context, trace: int, shape: SpanShape) -> bool:
        assert self._sampler is not None
        asked = self._sampler.should_sample(parent, trace, shape.name, shape.kind, shape.attributes)
        return asked.decision is Decision.RECORD_AND_SAMPLE


def context_of(span: SpanContext) -> contexts.Context:
    return api.set_span_in_context(NonRecordingSpan(span), NO_PARENT)

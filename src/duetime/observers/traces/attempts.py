"""Spans of attempts. Most attempts are not sampled: what those cost, every job costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry import context as contexts

from duetime.invoker import Context, Handler
from duetime.model.settle import Directive, Snooze
from duetime.model.trace import RANDOM_BITS
from duetime.observers.traces.sampling import Sampling
from duetime.observers.traces.span import CURRENT_SPAN, AttemptSpan, Spans
from duetime.tracing import current

Invoke = Callable[[Context, bytes], Awaitable[Any]]


class TracedHandler:
    """A handler whose attempts have spans, if they are sampled."""

    def __init__(self, name: str, handler: Handler, tracer: Spans, sampling: Sampling) -> None:
        self.policies = handler.policies
        self.limit = handler.limit
        self.keeps_output = getattr(handler, "keeps_output", True)
        self._calls_out = name.startswith("@")
        self._plain = handler.invoke
        self._tracer = tracer
        self._sampling = sampling
        # Every job comes here: a function is quicker than a method.
        self.invoke: Invoke = (
            self._decide
            if self._calls_out
            else _quick(getattr(handler, "invoke_plain", self._plain), self._decide, sampling.bound)
        )

    def _decide(self, context: Context, payload: bytes) -> Awaitable[Any]:
        job = context.job
        if self._sampling.of_attempt(job):
            return self._traced(AttemptSpan(self._tracer, job), context, payload)
        if self._calls_out:  # what it calls is told not to export its part of the trace either
            return self._traced(AttemptSpan(self._tracer, job, is_sampled=False), context, payload)
        return self._plain(context, payload)

    async def _traced(self, span: AttemptSpan, context: Context, payload: bytes) -> Any:
        """As `with span.active()`, with fewer calls."""
        outer = contexts.attach(contexts.Context({CURRENT_SPAN: span}))
        before = current.set(span)
        try:
            result = await self._plain(context, payload)
            if result is not None and isinstance(result, Directive) and not isinstance(result, Snooze):
                span.fail(type(result).__name__, str(result))
            return result
        except BaseException as problem:
            span.fail_by(problem)
            raise
        finally:
            current.reset(before)
            contexts.detach(outer)
            span.end()


def _quick(plain: Invoke, decide: Invoke, bound: int) -> Invoke:
    """Calls the handler itself for most jobs: those that their ids, by `lower_half`, leave out."""
    mask, bound = RANDOM_BITS, bound + 3 >> 2  # a comparison without the shift

    def invoke(context: Context, payload: bytes) -> Awaitable[Any]:
        job = context._job  # not the property
        if job.policies is None and job.id.int & mask >= bound:
            return plain(context, payload)
        return decide(context, payload)

    return invoke

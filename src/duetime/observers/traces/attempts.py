"""Spans of attempts. Most attempts are not sampled: what those cost, every job costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from opentelemetry.context import Context as OtelContext
from opentelemetry.context import attach, detach

from duetime.invoker import Context, Handler
from duetime.model.settle import Directive, Snooze
from duetime.model.trace import RANDOM_BITS, says_only_parent
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
            if self._calls_out or sampling.asks
            else self._by_id(getattr(handler, "invoke_plain", self._plain), sampling.bound)
        )

    def _decide(self, context: Context, payload: bytes) -> Awaitable[Any]:
        job = context.job
        if self._sampling.of_attempt(job):
            return _traced(AttemptSpan(self._tracer, job), self._plain, context, payload)
        if self._calls_out:  # what it calls is told not to export its part of the trace either
            span = AttemptSpan(self._tracer, job, is_sampled=False)
            return _traced(span, self._plain, context, payload)
        return self._plain(context, payload)

    def _by_id(self, plain: Invoke, bound: int) -> Invoke:
        """As `_decide`, for jobs that have no policies, or only those of a caller that is traced: with few
        calls, because the code of a sampled attempt is seldom in the caches of the processor."""
        decide, tracer, mask = self._decide, self._tracer, RANDOM_BITS
        bound = bound + 3 >> 2  # of `lower_half`, without its shift
        highest = 0x80 | bound >> 56  # with the variant of a UUID

        def invoke(context: Context, payload: bytes) -> Awaitable[Any]:
            job = context._job  # not the property
            policies = job.policies
            if policies is None:
                id = job.id
                # Of asyncpg's ids `int` is slow: one byte decides about most of them.
                if (type(id) is not UUID and id.bytes[8] > highest) or id.int & mask >= bound:
                    return plain(context, payload)  # most jobs
            elif not says_only_parent(policies):
                return decide(context, payload)
            return _traced(AttemptSpan(tracer, job), plain, context, payload)

        return invoke


async def _traced(span: AttemptSpan, plain: Invoke, context: Context, payload: bytes) -> Any:
    """As `with span.active()`, with fewer calls."""
    outer = attach(OtelContext({CURRENT_SPAN: span}))
    before = current.set(span)
    try:
        result = await plain(context, payload)
        if result is not None and isinstance(result, Directive) and not isinstance(result, Snooze):
            span.fail(type(result).__name__, str(result))
        return result
    except BaseException as problem:
        span.fail_by(problem)
        raise
    finally:
        current.reset(before)
        detach(outer)
        span.end()

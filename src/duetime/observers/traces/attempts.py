"""Spans of attempts. Most attempts are not sampled: what those cost, every job costs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from opentelemetry.context import Context as OtelContext
from opentelemetry.context import attach, detach

from duetime.invoker import Context, DirectCall, Handler
from duetime.model.settle import Directive, Snooze
from duetime.model.trace import RANDOM_BITS, parent_bytes
from duetime.observers.traces.sampling import Sampling
from duetime.observers.traces.span import CURRENT_SPAN, OWN_SPAN, AttemptSpan, Spans

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
        direct: DirectCall | None = getattr(handler, "direct", None)
        # Every job comes here: a function is quicker than a method.
        self.invoke: Invoke = (
            self._decide if direct is None or sampling.asks else self._by_id(direct, sampling.bound)
        )

    def _decide(self, context: Context, payload: bytes) -> Awaitable[Any]:
        job = context.job
        is_sampled = self._sampling.of_attempt(job)
        # What an unsampled attempt calls is told not to export its part of the trace either.
        if not is_sampled and not self._calls_out:
            return self._plain(context, payload)
        parent = None if job.policies is None else parent_bytes(job.policies)
        span = AttemptSpan(self._tracer, job, parent, is_sampled)
        return _traced(span, self._plain, context, payload)

    def _by_id(self, direct: DirectCall, bound: int) -> Invoke:
        """As `_decide`, for jobs that have no policies, or only those of a caller that is traced: with few
        calls, because the code of a sampled attempt is seldom in the caches of the processor."""
        decide, tracer, mask = self._decide, self._tracer, RANDOM_BITS
        function, with_context, read = direct

        def plain(context: Context, payload: bytes) -> Awaitable[Any]:
            return function(context, **read(payload)) if with_context else function(**read(payload))

        bound = bound + 3 >> 2  # of `lower_half`, without its shift
        highest = 0x80 | bound >> 56  # with the variant of a UUID

        def invoke(context: Context, payload: bytes) -> Awaitable[Any]:
            job = context._job  # not the property
            policies, parent = job.policies, None
            if policies is None:
                id = job.id
                # Of asyncpg's ids `int` is slow: one byte decides about most of them.
                if (type(id) is not UUID and id.bytes[8] > highest) or id.int & mask >= bound:
                    # Most jobs: as `plain` does it.
                    return function(context, **read(payload)) if with_context else function(**read(payload))
            elif (parent := parent_bytes(policies)) is None:
                return decide(context, payload)
            return _traced(AttemptSpan(tracer, job, parent), plain, context, payload)

        return invoke


async def _traced(span: AttemptSpan, plain: Invoke, context: Context, payload: bytes) -> Any:
    """As `with span.active()`, with fewer calls."""
    outer = attach(OtelContext({CURRENT_SPAN: span, OWN_SPAN: span}))
    try:
        result = await plain(context, payload)
        if result is not None and isinstance(result, Directive) and not isinstance(result, Snooze):
            span.fail(type(result).__name__, str(result))
        return result
    except BaseException as problem:
        span.fail_by(problem)
        raise
    finally:
        detach(outer)
        span.end()

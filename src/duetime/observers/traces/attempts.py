"""Spans of attempts. Most attempts are not sampled: what those cost, every job costs."""

from __future__ import annotations

from typing import Any

from duetime.invoker import Context, Handler
from duetime.model.settle import Directive, Snooze
from duetime.model.trace import GOLDEN, LOWER
from duetime.observers.traces.sampling import Sampling
from duetime.observers.traces.span import AttemptSpan, Spans


class TracedHandler:
    """A handler whose attempts have spans, if they are sampled."""

    def __init__(self, name: str, handler: Handler, tracer: Spans, sampling: Sampling) -> None:
        self.policies = handler.policies
        self.limit = handler.limit
        self.keeps_output = getattr(handler, "keeps_output", True)
        self._calls_out = name.startswith("@")
        self._handler = handler
        self._tracer = tracer
        self._sampling = sampling
        self._bound = sampling.bound

    def invoke(self, context: Context, payload: bytes) -> Any:
        job = context._job  # not the property: every job comes here
        if job.policies is None and job.id.int * GOLDEN & LOWER >= self._bound and not self._calls_out:
            return self._handler.invoke(context, payload)  # most attempts; as `lower_half`
        if self._sampling.of_attempt(job):
            return self._traced(AttemptSpan(self._tracer, job), context, payload)
        if self._calls_out:  # what it calls is told not to export its part of the trace either
            return self._traced(AttemptSpan(self._tracer, job, is_sampled=False), context, payload)
        return self._handler.invoke(context, payload)

    async def _traced(self, span: AttemptSpan, context: Context, payload: bytes) -> Any:
        with span.active():
            result = await self._handler.invoke(context, payload)
            if isinstance(result, Directive) and not isinstance(result, Snooze):
                span.fail(type(result).__name__, str(result))
            return result

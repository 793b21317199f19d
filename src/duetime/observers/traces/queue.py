"""Ended spans, until a thread of their own exports them in batches. A span costs its job one append."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence

from opentelemetry import context as contexts
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND
from duetime.observers.traces.shapes import EndedSpan
from duetime.observers.traces.variables import ExportLimits

MAX_FLUSH = 30_000  # milliseconds
LOG_INTERVAL = 20 * SECOND  # of warnings about dropped spans
# What instrumentation of HTTP clients looks for: without it every export would be a trace, too.
NOT_TRACED = "suppress_instrumentation"

Ended = EndedSpan | ReadableSpan
Export = Callable[[Sequence[EndedSpan], Sequence[ReadableSpan]], None]
log = logging.getLogger("duetime.traces")


class SpanQueue(SpanProcessor):
    """Also takes the spans of OpenTelemetry's SDK, as the processor of a provider."""

    def __init__(self, export: Export, limits: ExportLimits) -> None:
        self._export = export
        self._limits = limits
        self._batch = limits.batch
        self._begin()
        again = weakref.WeakMethod(self._begin)
        os.register_at_fork(after_in_child=lambda: begin() if (begin := again()) else None)

    def _begin(self) -> None:
        """In a process that was forked: the spans belong to its parent, and there is no thread."""
        self._ended: deque[Ended] = deque(maxlen=self._limits.queue)
        self._wake = threading.Event()
        self._flushes: deque[Callable[[], None]] = deque()
        self._dropped = 0
        self._warned_at = -LOG_INTERVAL
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="duetime-traces", daemon=True)
        self._thread.start()

    def add(self, span: Ended) -> None:
        """The oldest span is dropped if there is no room."""
        ended = self._ended
        if len(ended) >= self._batch:
            if len(ended) == self._limits.queue:
                self._dropped += 1
            if not self._wake.is_set():
                self._wake.set()
        ended.append(span)

    def flush(self, done: Callable[[], None]) -> None:
        """Exports all spans that have ended. `done` is called afterwards, in another thread."""
        self._flushes.append(done)
        self._wake.set()

    # Of OpenTelemetry

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled and not self._stopped:
            self.add(span)

    def force_flush(self, timeout_millis: int = MAX_FLUSH) -> bool:
        done = threading.Event()
        self.flush(done.set)
        return done.wait(timeout_millis / 1_000)

    def shutdown(self) -> None:
        self._stopped = True
        self._wake.set()
        self._thread.join(MAX_FLUSH / 1_000)

    # The thread

    def _run(self) -> None:
        contexts.attach(contexts.set_value(NOT_TRACED, True))
        is_last = False
        while not is_last:
            is_full = self._wake.wait(self._limits.delay)
            self._wake.clear()
            is_last = self._stopped
            flushes = [self._flushes.popleft() for _ in range(len(self._flushes))]
            # Only what is there now: spans that end while it is exported are not sent one by one.
            left = len(self._ended)
            if is_full and not flushes and not is_last:
                left -= left % self._batch
            while left > 0:
                left -= self._export_batch(left)
            for done in flushes:
                done()

    def _export_batch(self, limit: int) -> int:
        """How many were exported, or are lost."""
        ended = self._ended
        batch = [ended.popleft() for _ in range(min(limit, self._batch))]
        own = [span for span in batch if not isinstance(span, ReadableSpan)]
        others = [span for span in batch if isinstance(span, ReadableSpan)]
        try:
            self._export(own, others)
        except Exception:  # the next batch may fare better
            log.exception("traces: %d spans are lost", len(batch))
        if self._dropped and monotonic_micros() - self._warned_at >= LOG_INTERVAL:
            self._warned_at = monotonic_micros()
            log.warning("traces: %d spans dropped: the collector is too slow, or away", self._dropped)
            self._dropped = 0
        return len(batch)

"""The queue of ended spans: batches, its limits, and its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from duetime.observers.traces.queue import SpanQueue
from duetime.observers.traces.shapes import EndedSpan
from duetime.observers.traces.variables import ExportLimits

TIMEOUT = 60.0  # seconds
NEVER = 3_600.0


class Exports:
    """What is exported, in batches; nothing while the gate is closed."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.is_waiting = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def export(self, own: Sequence[EndedSpan], others: Sequence[ReadableSpan]) -> None:
        self.is_waiting.set()
        assert self.go_on.wait(TIMEOUT)
        self.batches.append(
            [*(int(one) for one in own if isinstance(one, bytes)), *(other.name for other in others)]
        )


def span(number: int) -> bytes:
    return str(number).encode()


def test_full_batch_is_exported_without_delay() -> None:
    exports = Exports()
    queue = SpanQueue(exports.export, ExportLimits(100, 5, NEVER))
    for number in range(6):
        queue.add(span(number))
    assert exports.is_waiting.wait(TIMEOUT)
    assert queue.force_flush()
    assert exports.batches == [[0, 1, 2, 3, 4], [5]]


def test_few_spans_are_exported_after_the_delay() -> None:
    exports = Exports()
    queue = SpanQueue(exports.export, ExportLimits(100, 50, 0.05))
    queue.add(span(1))
    assert exports.is_waiting.wait(TIMEOUT)
    queue.shutdown()
    assert exports.batches == [[1]]


def test_spans_that_end_during_an_export_wait_for_the_next() -> None:
    exports = Exports()

    def export(own: Sequence[EndedSpan], others: Sequence[ReadableSpan]) -> None:
        exports.export(own, others)
        if len(exports.batches) < 100:  # busy tasks: spans end all the time
            queue.add(span(len(exports.batches)))

    queue = SpanQueue(export, ExportLimits(100, 5, NEVER))
    queue.add(span(0))
    assert queue.force_flush()
    assert exports.batches == [[0]]
    assert queue.force_flush()
    assert exports.batches == [[0], [1]]


def test_oldest_spans_are_dropped_and_counted(caplog: Any) -> None:
    exports = Exports()
    exports.go_on.clear()
    queue = SpanQueue(exports.export, ExportLimits(10, 5, NEVER))
    queue.add(span(0))
    queue.flush(lambda: None)
    assert exports.is_waiting.wait(TIMEOUT)  # with the first one
    for number in range(1, 31):
        queue.add(span(number))
    with caplog.at_level(logging.WARNING):
        exports.go_on.set()
        assert queue.force_flush()
    assert exports.batches == [[0], [21, 22, 23, 24, 25], [26, 27, 28, 29, 30]]
    assert "20 spans dropped" in caplog.text


def test_error_of_an_export_does_not_end_the_thread(caplog: Any) -> None:
    exports = Exports()
    queue = SpanQueue(exports.export, ExportLimits(10, 5, NEVER))
    queue.add(b"x")  # `export` cannot read it
    with caplog.at_level(logging.ERROR):
        assert queue.force_flush()
    queue.add(span(1))
    assert queue.force_flush()
    assert exports.batches == [[1]]
    assert "1 spans are lost" in caplog.text


def test_spans_of_a_provider_are_exported_when_it_ends() -> None:
    exports = Exports()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SpanQueue(exports.export, ExportLimits(10, 5, NEVER)))
    with provider.get_tracer("shop").start_as_current_span("step"):
        pass
    provider.shutdown()
    assert exports.batches == [["step"]]


def test_flush_that_takes_too_long_is_told() -> None:
    exports = Exports()
    exports.go_on.clear()
    queue = SpanQueue(exports.export, ExportLimits(10, 5, NEVER))
    queue.add(span(1))
    assert not queue.force_flush(10)
    exports.go_on.set()
    assert queue.force_flush()

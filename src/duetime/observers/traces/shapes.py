"""What many spans have in common, encoded once: their name, their kind and some of their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from opentelemetry.trace import SpanKind

from duetime.model.target import shown_name
from duetime.observers.traces.otlp import EncodeChild, child_encoder, shape_bytes

MAX_SHAPES = 1_000  # that are kept, of each kind
# That of a job whose caller is traced, and which needs no other attributes: queue, target, tenant, the ids of
# its trace and its parent, the job, begin, end. Not encoded yet, but without the job's payload.
FirstAttempt = tuple[str, str, str, tuple[bytes, bytes], UUID, int, int]
EndedSpan = bytes | FirstAttempt


class SpanShape:
    __slots__ = ("attributes", "encoded", "kind", "name")

    def __init__(self, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> None:
        self.name = name
        self.kind = kind
        self.attributes = attributes
        self.encoded = shape_bytes(name, kind.value + 1, attributes)


@lru_cache(MAX_SHAPES)
def attempt_shape(queue: str, target: str, tenant: str, attempt: int) -> SpanShape:
    attributes = {
        **_messaging(queue, "process"),
        "duetime.target": shown_name(target),
        "duetime.tenant": tenant,
        "duetime.attempt": attempt,
    }
    return SpanShape(f"process {queue}", SpanKind.CONSUMER, attributes)


def encode_first(
    queue: str, target: str, tenant: str, ids: tuple[bytes, bytes], job: UUID, begin: int, end: int
) -> bytes:
    """A `FirstAttempt`."""
    return _first_encoder(queue, target, tenant)(ids[0], job, ids[1], begin, end)


@lru_cache(MAX_SHAPES)
def _first_encoder(queue: str, target: str, tenant: str) -> EncodeChild:
    return child_encoder(attempt_shape(queue, target, tenant, 1).encoded)


@lru_cache(MAX_SHAPES)
def send_shape(queue: str, target: str) -> SpanShape:
    attributes = {**_messaging(queue, "send"), "duetime.target": shown_name(target)}
    return SpanShape(f"send {queue}", SpanKind.PRODUCER, attributes)


def _messaging(queue: str, operation: str) -> dict[str, Any]:
    """The semantic conventions for messaging: a job is a message, its queue the destination."""
    return {
        "messaging.system": "duetime",
        "messaging.destination.name": queue,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }

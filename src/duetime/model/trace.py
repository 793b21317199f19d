"""Trace ids of jobs. They follow from the job and the number of the attempt, so that every process knows them
and nothing is stored for it; only the context of a caller that is traced itself is stored with its job.

The first attempt is part of the caller's trace, if there is one and the job is due soon. Every other attempt,
and every fire of a schedule, is a trace of its own. The lower halves of the trace ids of all attempts are the
same: a sampler that looks at them decides for a job as a whole."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

from duetime.model.codec import decode, encode
from duetime.model.instant import SECOND, Micros

# Names in the policies of a job. It is a child of the caller's span, or has a link to it.
CHILD, LINKED = "trace", "trace_link"
MAX_CHILD_DELAY = 60 * SECOND  # a job that is due later is not part of the caller's trace: traces are short
LOWER = 0xFFFF_FFFF_FFFF_FFFF
GOLDEN = 0x9E37_79B9_7F4A_7C15  # 2**64 divided by the golden ratio: products are spread evenly
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


class SpanId(NamedTuple):
    """Names one span, as in a traceparent header."""

    trace: int
    span: int
    sampled: bool = True

    @property
    def trace_text(self) -> str:
        return f"{self.trace:032x}"

    @property
    def span_text(self) -> str:
        return f"{self.span:016x}"

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace:032x}-{self.span:016x}-{self.sampled:02x}"

    @staticmethod
    def read(text: Any) -> SpanId | None:
        found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            return None
        trace, span, flags = (int(part, 16) for part in found.groups())
        return SpanId(trace, span, bool(flags & 1)) if trace and span and text[:2] != "ff" else None


class Origin(NamedTuple):
    """The span of the caller that submitted a job."""

    span: SpanId
    linked: bool = False  # the job is not a child of it


class AttemptTrace(NamedTuple):
    id: SpanId  # of the attempt
    parent: SpanId | None
    link: SpanId | None


def origin_of(policies: bytes | None) -> Origin | None:
    if policies is None or b'"trace' not in policies:  # most jobs
        return None
    own = decode(policies)
    for name in (CHILD, LINKED):
        span = SpanId.read(own.get(name))
        if span is not None:
            return Origin(span, name == LINKED)
    return None


def with_origin(policies: bytes | None, span: SpanId, delay: Micros) -> bytes:
    """The policies of a job that this span submits, due after this time."""
    own = {} if policies is None else decode(policies)
    own[LINKED if delay > MAX_CHILD_DELAY else CHILD] = span.traceparent
    return encode(own)


def attempt_trace(job_id: UUID, attempt: int, policies: bytes | None) -> AttemptTrace:
    origin = origin_of(policies)
    if attempt <= 1 and origin is not None and not origin.linked:
        return AttemptTrace(SpanId(origin.span.trace, _span(job_id, 1)), origin.span, None)
    own = SpanId(root_trace_id(job_id, attempt, origin), _span(job_id, attempt))
    if attempt <= 1:
        return AttemptTrace(own, None, None if origin is None else origin.span)
    return AttemptTrace(own, None, attempt_trace(job_id, 1, policies).id)


def root_trace_id(job_id: UUID, attempt: int, origin: Origin | None = None) -> int:
    """Of an attempt that begins a trace."""
    upper = int.from_bytes(blake2b(b"%s%d" % (job_id.bytes, attempt), digest_size=8).digest(), "big")
    return (upper or 1) << 64 | lower_half(job_id, origin)


def lower_half(job_id: UUID, origin: Origin | None = None) -> int:
    """Of all traces that attempts of this job begin. Evenly spread, and quick: every attempt asks for it."""
    return job_id.int * GOLDEN & LOWER if origin is None else origin.span.trace & LOWER


def _span(job_id: UUID, attempt: int) -> int:
    digest = blake2b(b"%s%d" % (job_id.bytes, attempt), digest_size=8, person=b"span").digest()
    return int.from_bytes(digest, "big") or 1


# Settings

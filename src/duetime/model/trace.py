"""Trace ids of jobs. They follow from the job and the number of the attempt, so that every process knows them
and nothing is stored for it; only the context of a caller that is traced itself is stored with its job.

The first attempt is part of the caller's trace, if there is one and the job is due soon. Every other attempt,
and every fire of a schedule, is a trace of its own. The lower halves of the trace ids of all attempts are the
same: a sampler that looks at them decides for a job as a whole."""

from __future__ import annotations

import re
from binascii import unhexlify
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from duetime.model.codec import decode, encode
from duetime.model.instant import SECOND, Micros

# Names in the policies of a job. It is a child of the caller's span, or has a link to it.
CHILD, LINKED = "trace", "trace_link"
MAX_CHILD_DELAY = 60 * SECOND  # a job that is due later is not part of the caller's trace: traces are short
SUBMISSION = 0  # in place of the number of an attempt
LOWER = 0xFFFF_FFFF_FFFF_FFFF
RANDOM_BITS = LOWER >> 2  # of the id of a job: random, or a hash
# Odd numbers: products with them are different for different ids, and spread evenly. The first is 2**64
# divided by the golden ratio, the second 2**64 divided by the square root of 2.
GOLDEN, STEP = 0x9E37_79B9_7F4A_7C15, 0xB504_F333_F9DE_6485
ODD = "13579bdf"
# {"trace":"00-TRACE-SPAN-01"}: policies that say nothing else
CHILD_BEGINS, TRACE_PLACE, SPAN_PLACE, CHILD_LENGTH = b'{"trace":"00-', slice(13, 45), slice(46, 62), 67
ORIGIN_LENGTH = CHILD_LENGTH + len(LINKED) - len(CHILD)  # of policies that say only that, at most
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


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
        if not isinstance(text, str) or _TRACEPARENT.fullmatch(text) is None:
            return None
        trace, span = int(text[3:35], 16), int(text[36:52], 16)
        return SpanId(trace, span, text[54] in ODD) if trace and span and text[:2] != "ff" else None


class Origin(NamedTuple):
    """The span of the caller that submitted a job."""

    span: SpanId
    linked: bool = False  # the job is not a child of it


class AttemptTrace(NamedTuple):
    id: SpanId  # of the attempt
    parent: SpanId | None
    link: SpanId | None


def has_origin(policies: bytes | None) -> bool:
    """Whether a caller that is traced submitted the job. Only such a caller is stored."""
    return policies is not None and b'"trace' in policies


def origin_of(policies: bytes | None) -> Origin | None:
    if policies is None or not has_origin(policies):  # most jobs
        return None
    own = decode(policies)
    child = SpanId.read(own.get(CHILD))
    if child is not None:
        return Origin(child)
    linked = SpanId.read(own.get(LINKED))
    return None if linked is None else Origin(linked, linked=True)


@lru_cache(1_000)  # jobs that are submitted together have the same
def parent_bytes(policies: bytes) -> tuple[bytes, bytes] | None:
    """The ids of the trace and of the span that the first attempt of a job is a child of, if its policies say
    only that, as `with_origin` writes them. None says nothing. Quick: every exported attempt asks."""
    if len(policies) != CHILD_LENGTH or not policies.startswith(CHILD_BEGINS):
        return None
    try:
        return unhexlify(policies[TRACE_PLACE]), unhexlify(policies[SPAN_PLACE])
    except ValueError:
        return None


def is_only_origin(policies: bytes) -> bool:
    """Whether they say nothing but where the job comes from. Quick: every job that has policies asks. Another
    one after the origin needs more room."""
    return len(policies) <= ORIGIN_LENGTH and policies.startswith(b'{"trace')


def with_origin(policies: bytes | None, span: SpanId, delay: Micros) -> bytes:
    """The policies of a job that this span submits, due after this time."""
    own = {} if policies is None else decode(policies)
    own[LINKED if delay > MAX_CHILD_DELAY else CHILD] = span.traceparent
    return encode(own)


def attempt_trace(job_id: UUID, attempt: int, policies: bytes | None) -> AttemptTrace:
    return trace_of(job_id, attempt, origin_of(policies))


def trace_of(job_id: UUID, attempt: int, origin: Origin | None) -> AttemptTrace:
    if attempt <= 1 and origin is not None and not origin.linked:
        return AttemptTrace(SpanId(origin.span.trace, attempt_span_id(job_id, 1)), origin.span, None)
    own = SpanId(root_trace_id(job_id, attempt, origin), attempt_span_id(job_id, attempt))
    if attempt <= 1:
        return AttemptTrace(own, None, None if origin is None else origin.span)
    return AttemptTrace(own, None, trace_of(job_id, 1, origin).id)


def submission_trace(job_id: UUID) -> SpanId:
    """The span that submits this job, if it begins a trace: a sampler decides for it as for the job."""
    return SpanId(root_trace_id(job_id, SUBMISSION), attempt_span_id(job_id, SUBMISSION))


def root_trace_id(job_id: UUID, attempt: int, origin: Origin | None = None) -> int:
    """Of an attempt, or of the submission, that begins a trace."""
    upper = (job_id.int ^ job_id.int >> 64) * GOLDEN + attempt * STEP & LOWER
    return (upper or 1) << 64 | lower_half(job_id, origin)


def lower_half(job_id: UUID, origin: Origin | None = None) -> int:
    """Of all traces that attempts of this job begin. Evenly spread, and quick: every attempt asks for it."""
    return (job_id.int & RANDOM_BITS) << 2 if origin is None else origin.span.trace & LOWER


def attempt_span_id(job_id: UUID, attempt: int) -> int:
    """Different for all attempts of all jobs, as far as the 62 random bits of their ids are. The first
    attempt has the lower half of the id."""
    return (job_id.int + (attempt - 1) * GOLDEN & LOWER) or 1

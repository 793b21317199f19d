"""Trace ids of attempts: they follow from the job."""

from __future__ import annotations

from uuid import UUID

import pytest

from duetime.model.codec import decode
from duetime.model.ids import RepeatedIds, fire_id
from duetime.model.instant import SECOND
from duetime.model.trace import (
    LOWER,
    SpanId,
    attempt_trace,
    is_only_origin,
    parent_bytes,
    root_trace_id,
    with_origin,
)

JOB = UUID("01935c2e-7b3a-7000-8000-000000000000")
CALLER = SpanId(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7)


def test_traceparent_is_written_and_read() -> None:
    text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert CALLER.traceparent == text
    assert SpanId.read(text) == CALLER
    assert SpanId.read(f"{text[:-1]}0") == CALLER._replace(sampled=False)
    assert SpanId.read(f"cc{text[2:]}-what-the-future-will-be-like") == CALLER


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "00-0-0-01",
        f"00-{0:032x}-00f067aa0ba902b7-01",
        f"00-{CALLER.trace_text}-{0:016x}-01",
        f"ff-{CALLER.trace_text}-{CALLER.span_text}-01",
        f"00-{CALLER.trace_text.upper()}-{CALLER.span_text}-01",
    ],
)
def test_wrong_traceparent_is_ignored(text: object) -> None:
    assert SpanId.read(text) is None


def test_first_attempt_is_a_child_of_the_caller() -> None:
    stored = with_origin(b'{"timeout":"5m"}', CALLER, 10 * SECOND)
    assert decode(stored)["timeout"] == "5m"
    own, parent, link = attempt_trace(JOB, 1, stored)
    assert (own.trace, parent, link) == (CALLER.trace, CALLER, None)


def test_later_attempts_are_roots_with_a_link_to_the_first() -> None:
    for stored in (None, with_origin(None, CALLER, 0), with_origin(None, CALLER, 3_600 * SECOND)):
        first, second, third = (attempt_trace(JOB, number, stored) for number in (1, 2, 3))
        assert second.parent is third.parent is None
        assert second.link == third.link == first.id
        assert len({first.id.trace, second.id.trace, third.id.trace}) == 3
        # A sampler that looks at the lower half decides alike.
        assert {one.id.trace & LOWER for one in (first, second, third)} == {first.id.trace & LOWER}


def test_job_due_later_has_a_link_to_the_caller() -> None:
    own, parent, link = attempt_trace(JOB, 1, with_origin(None, CALLER, 61 * SECOND))
    assert (parent, link) == (None, CALLER)
    assert own.trace != CALLER.trace


def test_only_policies_without_anything_else_are_known_by_their_form() -> None:
    parent = CALLER.trace.to_bytes(16, "big"), CALLER.span.to_bytes(8, "big")
    assert parent_bytes(with_origin(None, CALLER, 0)) == parent
    for others in (
        b"{}",
        b'{"timeout":"5m"}',
        with_origin(None, CALLER, 61 * SECOND),
        with_origin(b'{"timeout":"5m"}', CALLER, 0),
        with_origin(None, CALLER, 0)[:-1] + b',"version":2}',
        with_origin(None, CALLER, 0).replace(CALLER.trace_text.encode(), b"x" * 32),
    ):
        assert parent_bytes(others) is None


@pytest.mark.parametrize("delay", [0, 3_600 * SECOND])
def test_policies_of_the_job_itself_are_seen_beside_its_origin(delay: int) -> None:
    only = with_origin(None, CALLER, delay)
    assert is_only_origin(only)
    assert is_only_origin(with_origin(only, CALLER, delay))
    for own in (b'{"retry":{}}', b'{"expires":1}'):
        assert not is_only_origin(with_origin(own, CALLER, delay))
        assert not is_only_origin(only[:-1] + b"," + own[1:])


@pytest.mark.parametrize(
    "ids",
    [
        [fire_id(JOB, number * SECOND) for number in range(2_000)],
        RepeatedIds(b"seed").new_many([0] * 2_000),
    ],
)
def test_lower_halves_are_spread_evenly(ids: list[UUID]) -> None:
    low = [root_trace_id(one, 1) & LOWER for one in ids]
    for tenth in range(10):
        assert 100 < sum(tenth <= one * 10 // LOWER < tenth + 1 for one in low) < 320

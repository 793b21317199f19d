"""Which lanes a worker reads and from where on: never above now, never past something it was told of."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.engine.fetch import cursors as module
from duetime.engine.fetch.cursors import ANY_QUEUE, SLACK, ClaimCursors
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.store import Lane

NOW: Micros = 1_000 * SECOND


def claimed(due_at: Micros, queue: str = "default", priority: int = 5) -> Claimed:
    return Claimed(
        UUID(int=1),
        1,
        "task",
        b"{}",
        due_at,
        queue,
        priority,
        due_at,
        0,
        0,
        False,
        None,
        None,
        None,
        None,
        None,
        None,
        "default",
    )


def low(lanes: ClaimCursors, queue: str = "default", priority: int = 5) -> Micros:
    return next(lane.low for lane in lanes.from_cursors() if (lane.queue, lane.priority) == (queue, priority))


def test_most_urgent_first_in_every_queue() -> None:
    lanes = ClaimCursors(["b", "a"])
    order = [(lane.priority, lane.queue) for lane in lanes.from_cursors()]
    assert order[:3] == [(9, "a"), (9, "b"), (8, "a")]
    assert len(order) == 20


def test_a_claim_raises_the_bound_of_its_lane_only() -> None:
    lanes = ClaimCursors(["default"])
    lanes.claimed([claimed(NOW - 5)], NOW)
    assert low(lanes) == NOW - 5
    assert low(lanes, priority=9) == 0


def test_a_job_claimed_ahead_does_not_raise_the_bound() -> None:
    """One stored a moment later may be due before it."""
    lanes = ClaimCursors(["default"])
    lanes.claimed([claimed(NOW + 1)], NOW)
    assert low(lanes) == 0


def test_an_exhausted_lane_is_still_read_a_little_back() -> None:
    lanes = ClaimCursors(["default"])
    lanes.exhausted(NOW, lanes.from_cursors())
    assert low(lanes) == NOW - SLACK


def test_a_hint_lowers_the_bound_of_its_lane() -> None:
    lanes = ClaimCursors(["default"])
    lanes.exhausted(NOW, lanes.from_cursors())
    lanes.hinted(JobHint("default", 5, NOW - 60 * SECOND))
    assert low(lanes) == NOW - 60 * SECOND
    assert low(lanes, priority=9) == NOW - SLACK


def test_a_hint_about_everything_lowers_all_bounds() -> None:
    lanes = ClaimCursors(["default", "mail"])
    lanes.exhausted(NOW, lanes.from_cursors())
    lanes.hinted(JobHint(ANY_QUEUE, 0, 0))
    assert {lane.low for lane in lanes.from_cursors()} == {0}


def test_a_hint_adds_its_lane() -> None:
    lanes = ClaimCursors(["default"])
    lanes.hinted(JobHint("mail", 5, NOW, "acme"))
    assert ("mail", 5, "acme") in lanes


def test_news_are_the_lanes_with_new_jobs() -> None:
    lanes = ClaimCursors(["default", "mail"])
    assert lanes.take_news() is None
    lanes.hinted(JobHint("default", 5, NOW))
    lanes.hinted(JobHint("default", 9, NOW))
    assert lanes.take_news() == frozenset({("default", 5, "default"), ("default", 9, "default")})
    lanes.hinted(JobHint("default", 5, NOW))
    lanes.hinted(JobHint(ANY_QUEUE, 0, 0))
    assert lanes.take_news() is None
    assert not lanes.has_news
    assert lanes.take_news() == frozenset()


def test_lanes_with_news_come_most_urgent_first() -> None:
    lanes = ClaimCursors(["b", "a"])
    lanes.take_news()
    for queue, priority in (("a", 3), ("b", 9), ("b", 3), ("a", 9)):
        lanes.hinted(JobHint(queue, priority, NOW))
    assert [lane[:2] for lane in lanes.from_cursors(lanes.take_news())] == [
        ("a", 9),
        ("b", 9),
        ("a", 3),
        ("b", 3),
    ]


def test_the_sweep_reads_from_the_beginning() -> None:
    lanes = ClaimCursors(["default"])
    lanes.exhausted(NOW, lanes.from_cursors())
    assert {lane.low for lane in lanes.from_start()} == {0}


def test_a_lane_learned_again_keeps_its_bound() -> None:
    lanes = ClaimCursors(["default"])
    lanes.exhausted(NOW, lanes.from_cursors())
    assert lanes.learn([Lane("default", 5, 0), Lane("mail", 5, 0)], complete=True)
    assert (low(lanes), low(lanes, "mail")) == (NOW - SLACK, 0)
    assert not lanes.learn([Lane("mail", 5, 0)], complete=True)


def test_empty_lanes_are_forgotten_unless_a_hint_names_them() -> None:
    lanes = ClaimCursors(["default"])
    lanes.take_news()
    lanes.learn([Lane("a", 5, 0), Lane("b", 5, 0), Lane("c", 5, 0, "acme")], complete=True)
    lanes.learn([Lane("a", 5, 0)], complete=False)
    lanes.hinted(JobHint("c", 5, NOW, "acme"))
    lanes.learn([], complete=True)
    assert {*lanes.queues} == {"a", "c", "default"}
    lanes.take_news()
    lanes.learn([], complete=True)
    lanes.learn([], complete=True)
    assert {*lanes.queues} == {"default"}


def test_claim_of_a_forgotten_lane_is_harmless() -> None:
    lanes = ClaimCursors(["default"])
    lanes.claimed([claimed(NOW - 5, "gone")], NOW)
    lanes.exhausted(NOW, [Lane("gone", 5, 0)])
    assert lanes.queues == ("default",)


def test_hint_about_a_queue_that_is_not_served_adds_no_lane() -> None:
    lanes = ClaimCursors(["mail"], fixed=True)
    lanes.hinted(JobHint("default", 5, NOW))
    lanes.hinted(JobHint("mail", 5, NOW, "acme"))
    assert lanes.queues == ("mail",)
    assert ("mail", 5, "acme") in lanes


def test_place_in_a_limited_queue_is_news_for_every_tenant() -> None:
    lanes = ClaimCursors(["default"])
    lanes.limited = frozenset({"bulk"})
    lanes.learn([Lane("bulk", 5, 0, "acme")], complete=True)
    lanes.take_news()
    lanes.hinted(JobHint("bulk", 5, 0))
    assert lanes.take_news() == frozenset({("bulk", 5, "acme"), ("bulk", 5, "default")})


@given(
    st.lists(st.tuples(st.sampled_from(["claim", "hint", "exhausted"]), st.integers(0, 2 * NOW)), max_size=30)
)
def test_a_bound_never_passes_now(steps: list[tuple[str, Micros]]) -> None:
    lanes = ClaimCursors(["default"])
    for step, instant in steps:
        match step:
            case "claim":
                lanes.claimed([claimed(instant)], NOW)
            case "hint":
                lanes.hinted(JobHint("default", 5, instant))
                assert low(lanes) <= instant
            case _:
                lanes.exhausted(NOW, lanes.from_cursors())
        assert low(lanes) <= NOW


def test_under_a_flood_every_lane_has_its_turn() -> None:
    """The lane that waited longest is first; lanes without jobs do not delay the others."""
    lanes = ClaimCursors(["a", "b"])
    waiting = {("a", 9), ("b", 9), ("a", 5), ("b", 0)}
    had: list[tuple[str, int]] = []
    for _ in range(2 * len(waiting)):
        first = next(lane for lane in lanes.least_recently_read() if (lane.queue, lane.priority) in waiting)
        lanes.read_out_of_order([claimed(NOW, first.queue, first.priority)])
        had.append((first.queue, first.priority))
    assert had[:4] == [("b", 0), ("a", 5), ("a", 9), ("b", 9)]
    assert had[4:] == had[:4]


def test_a_limited_queue_is_always_read_from_the_beginning() -> None:
    """What its limit held up stays behind, however long it has been due."""
    lanes = ClaimCursors(["default", "mail"])
    lanes.limited = frozenset({"mail"})
    lanes.exhausted(NOW, lanes.from_cursors())
    assert (low(lanes), low(lanes, "mail")) == (NOW - SLACK, 0)


def test_lanes_are_sorted_once_for_many_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    original = module._most_urgent_first

    def counting(lane: module.LaneName) -> tuple[int, str, str]:
        compared.append(lane)
        return original(lane)

    monkeypatch.setattr(module, "_most_urgent_first", counting)
    lanes = ClaimCursors(["default"])
    for number in range(500):
        lanes.hinted(JobHint(f"q{number}", 5, NOW))
    assert len(lanes.from_cursors()) == len(lanes.from_start()) == 510
    assert len(compared) == 510

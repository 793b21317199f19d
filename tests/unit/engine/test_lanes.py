"""Which lanes a worker reads and from where on: never above now, never past something it was told of."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from duetime.engine.lanes import ALL_LANES, ANY_QUEUE, SLACK, Lanes
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed

NOW: Micros = 1_000 * SECOND


def claimed(due_at: Micros, queue: str = "default", priority: int = 5) -> Claimed:
    return Claimed(
        UUID(int=1), 1, "task", b"{}", due_at, queue, priority, due_at, 0, 0, False, None, None, None, None, None, None, "default"
    )


def low(lanes: Lanes, queue: str = "default", priority: int = 5) -> Micros:
    return next(lane.low for lane in lanes.bounded() if (lane.queue, lane.priority) == (queue, priority))


def test_most_urgent_first_in_every_queue() -> None:
    lanes = Lanes(["b", "a"])
    order = [(lane.priority, lane.queue) for lane in lanes.bounded()]
    assert order[:3] == [(9, "a"), (9, "b"), (8, "a")]
    assert len(order) == 20


def test_a_claim_raises_the_bound_of_its_lane_only() -> None:
    lanes = Lanes(["default"])
    lanes.claimed([claimed(NOW - 5)], NOW)
    assert low(lanes) == NOW - 5
    assert low(lanes, priority=9) == 0


def test_a_job_claimed_ahead_does_not_raise_the_bound() -> None:
    """One stored a moment later may be due before it."""
    lanes = Lanes(["default"])
    lanes.claimed([claimed(NOW + 1)], NOW)
    assert low(lanes) == 0


def test_an_exhausted_lane_is_still_read_a_little_back() -> None:
    lanes = Lanes(["default"])
    lanes.exhausted(NOW, lanes.bounded())
    assert low(lanes) == NOW - SLACK


def test_a_hint_lowers_the_bound_of_its_lane() -> None:
    lanes = Lanes(["default"])
    lanes.exhausted(NOW, lanes.bounded())
    lanes.heard(JobHint("default", 5, NOW - 60 * SECOND))
    assert low(lanes) == NOW - 60 * SECOND
    assert low(lanes, priority=9) == NOW - SLACK


def test_a_hint_about_everything_lowers_all_bounds() -> None:
    lanes = Lanes(["default", "mail"])
    lanes.exhausted(NOW, lanes.bounded())
    lanes.heard(JobHint(ANY_QUEUE, 0, 0))
    assert {lane.low for lane in lanes.bounded()} == {0}


def test_a_hint_about_an_unknown_queue_is_ignored() -> None:
    lanes = Lanes(["default"])
    lanes.heard(JobHint("mail", 5, 0))
    assert "mail" not in lanes


def test_news_is_where_something_came_and_what_it_may_be() -> None:
    lanes = Lanes(["default", "mail"])
    assert lanes.news() == ALL_LANES
    lanes.heard(JobHint("default", 5, NOW, exclusive=False))
    lanes.heard(JobHint("default", 9, NOW, exclusive=False))
    assert lanes.news() == (frozenset({("default", 5), ("default", 9)}), False)
    lanes.heard(JobHint("default", 5, NOW, exclusive=False))
    lanes.heard(JobHint("mail", 5, NOW))
    assert lanes.news() == (frozenset({("default", 5), ("mail", 5)}), True)
    lanes.heard(JobHint("default", 5, NOW, exclusive=False))
    lanes.heard(JobHint(ANY_QUEUE, 0, 0))
    assert lanes.news() == ALL_LANES
    assert lanes.news() == (frozenset(), False)


def test_lanes_with_news_come_most_urgent_first() -> None:
    lanes = Lanes(["b", "a"])
    lanes.news()
    for queue, priority in (("a", 3), ("b", 9), ("b", 3), ("a", 9)):
        lanes.heard(JobHint(queue, priority, NOW))
    assert [lane[:2] for lane in lanes.bounded(lanes.news().lanes)] == [("a", 9), ("b", 9), ("a", 3), ("b", 3)]


def test_the_sweep_reads_from_the_beginning() -> None:
    lanes = Lanes(["default"])
    lanes.exhausted(NOW, lanes.bounded())
    assert {lane.low for lane in lanes.unbounded()} == {0}


def test_a_queue_added_again_keeps_its_bound() -> None:
    lanes = Lanes(["default"])
    lanes.exhausted(NOW, lanes.bounded())
    lanes.add(["default", "mail"])
    assert (low(lanes), low(lanes, "mail")) == (NOW - SLACK, 0)


@given(st.lists(st.tuples(st.sampled_from(["claim", "hint", "exhausted"]), st.integers(0, 2 * NOW)), max_size=30))
def test_a_bound_never_passes_now(steps: list[tuple[str, Micros]]) -> None:
    lanes = Lanes(["default"])
    for step, instant in steps:
        match step:
            case "claim":
                lanes.claimed([claimed(instant)], NOW)
            case "hint":
                lanes.heard(JobHint("default", 5, instant))
                assert low(lanes) <= instant
            case _:
                lanes.exhausted(NOW, lanes.bounded())
        assert low(lanes) <= NOW


def test_under_a_flood_every_lane_has_its_turn() -> None:
    """Whoever had no turn for longest is first; those that yield nothing are in nobody's way."""
    lanes = Lanes(["a", "b"])
    waiting = {("a", 9), ("b", 9), ("a", 5), ("b", 0)}
    had: list[tuple[str, int]] = []
    for _ in range(2 * len(waiting)):
        first = next(lane for lane in lanes.patient() if (lane.queue, lane.priority) in waiting)
        lanes.had_turn([claimed(NOW, first.queue, first.priority)])
        had.append((first.queue, first.priority))
    assert had[:4] == [("b", 0), ("a", 5), ("a", 9), ("b", 9)]
    assert had[4:] == had[:4]


def test_a_limited_queue_is_always_read_from_the_beginning() -> None:
    """What its limit held up stays behind, however long it has been due."""
    lanes = Lanes(["default", "mail"])
    lanes.limited = frozenset({"mail"})
    lanes.exhausted(NOW, lanes.bounded())
    assert (low(lanes), low(lanes, "mail")) == (NOW - SLACK, 0)

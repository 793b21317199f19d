"""How many jobs to claim ahead: none before anything is known, and never more than will start in a moment."""

from __future__ import annotations

from duetime.engine.pace import AHEAD, FEWEST, MOST_AHEAD, Pace
from duetime.model.instant import SECOND


def measured(starts: int, lapse: int) -> Pace:
    pace = Pace()
    pace.begin(0)
    for _ in range(starts):
        pace.starts += 1
    pace.measure(lapse)
    return pace


def test_nothing_is_known_at_first() -> None:
    assert Pace().soon() == 0


def test_few_starts_are_no_measurement() -> None:
    assert measured(FEWEST - 1, 1_000).soon() == 0


def test_a_steady_pace_is_projected() -> None:
    assert measured(100, SECOND).soon() == 100 * AHEAD // SECOND


def test_a_very_quick_one_is_bounded() -> None:
    assert measured(1_000_000, 1).soon() == MOST_AHEAD


def test_idle_time_is_not_measured() -> None:
    pace = measured(100, SECOND)
    pace.end(SECOND)
    for _ in range(1_000):
        pace.starts += 1
    pace.measure(100 * SECOND)
    assert pace.soon() == 100 * AHEAD // SECOND


def test_a_new_measurement_counts_half() -> None:
    pace = measured(100, SECOND)
    for _ in range(100):
        pace.starts += 1
    pace.measure(4 * SECOND)
    assert pace.soon() == AHEAD // 20_000


def test_few_slots_are_measured_together() -> None:
    """Ten slots never start twenty jobs at a stretch; two stretches of ten count as one measurement."""
    pace = Pace()
    for _ in range(2):
        pace.begin(0)
        pace.starts += FEWEST // 2
        pace.end(FEWEST // 2 * 1_000)
    assert pace.soon() == AHEAD // 1_000


def test_a_stretch_that_was_broken_off_is_forgotten() -> None:
    pace = Pace()
    pace.begin(0)
    pace.starts += FEWEST
    pace.begin(50 * SECOND)
    pace.starts += FEWEST
    pace.end(50 * SECOND + FEWEST * 1_000)
    assert pace.soon() == AHEAD // 1_000

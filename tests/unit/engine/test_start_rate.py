"""How many jobs to claim ahead: none before there is a measurement, and never more than will start soon."""

from __future__ import annotations

from duetime.engine.run.capacity import AHEAD, MAX_AHEAD, MIN_STARTS, StartRate
from duetime.model.instant import SECOND


def measured(starts: int, lapse: int) -> StartRate:
    rate = StartRate()
    rate.begin(0)
    for _ in range(starts):
        rate.starts += 1
    rate.end(lapse)
    return rate


def test_nothing_is_known_at_first() -> None:
    assert StartRate().soon() == 0


def test_few_starts_are_no_measurement() -> None:
    assert measured(MIN_STARTS - 1, 1_000).soon() == 0


def test_a_steady_pace_is_projected() -> None:
    assert measured(100, SECOND).soon() == 100 * AHEAD // SECOND


def test_a_very_quick_one_is_bounded() -> None:
    assert measured(1_000_000, 1).soon() == MAX_AHEAD


def test_idle_time_is_not_measured() -> None:
    rate = measured(100, SECOND)
    rate.end(SECOND)
    for _ in range(1_000):
        rate.starts += 1
    rate.end(100 * SECOND)
    assert rate.soon() == 100 * AHEAD // SECOND


def test_a_new_measurement_counts_half() -> None:
    rate = measured(100, SECOND)
    rate.begin(SECOND)
    for _ in range(100):
        rate.starts += 1
    rate.end(4 * SECOND)
    assert rate.soon() == AHEAD // 20_000


def test_few_slots_are_measured_together() -> None:
    """Ten slots never start twenty jobs at a stretch; two stretches of ten count as one measurement."""
    rate = StartRate()
    for _ in range(2):
        rate.begin(0)
        rate.starts += MIN_STARTS // 2
        rate.end(MIN_STARTS // 2 * 1_000)
    assert rate.soon() == AHEAD // 1_000


def test_a_stretch_that_was_broken_off_is_forgotten() -> None:
    rate = StartRate()
    rate.begin(0)
    rate.starts += MIN_STARTS
    rate.begin(50 * SECOND)
    rate.starts += MIN_STARTS
    rate.end(50 * SECOND + MIN_STARTS * 1_000)
    assert rate.soon() == AHEAD // 1_000

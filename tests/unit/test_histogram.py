"""Lapses on a logarithmic scale."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from duetime.model.histogram import BOUNDS, FEW_BOUNDS, Histogram

LAPSES = st.lists(st.integers(0, 2 * BOUNDS[-1]) | st.sampled_from(BOUNDS), max_size=60)


def of(lapses: list[int]) -> Histogram:
    made = Histogram()
    made.add(lapses)
    return made


def test_the_bounds_rise_by_about_a_quarter_and_those_shown_are_among_them() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
    assert max(high / low for low, high in pairwise(BOUNDS[6:])) < 1.3
    assert set(FEW_BOUNDS) <= set(BOUNDS)
    assert (FEW_BOUNDS[0], FEW_BOUNDS[-1]) == (1_000, 500_000_000)


@given(LAPSES)
def test_as_many_are_up_to_each_bound_as_there_are(lapses: list[int]) -> None:
    assert dict(of(lapses).up_to(FEW_BOUNDS)) == {
        bound: sum(lapse <= bound for lapse in lapses) for bound in FEW_BOUNDS
    }
    assert (of(lapses).count, of(lapses).total) == (len(lapses), sum(lapses))


@given(LAPSES, LAPSES)
def test_merged_is_as_if_all_had_been_added_to_one(first: list[int], second: list[int]) -> None:
    merged = of(first)
    merged.merge(of(second))
    merged.add([])
    assert merged.to_json() == of(first + second).to_json()


@given(LAPSES)
def test_histogram_survives_a_round_trip(lapses: list[int]) -> None:
    made = of(lapses)
    again = Histogram.from_json(made.to_json())
    assert (again.counts, again.total) == (made.counts, made.total)


@given(
    st.lists(st.integers(200, BOUNDS[-1]), min_size=1, max_size=60), st.sampled_from([0.5, 0.9, 0.99, 1.0])
)
def test_a_quantile_is_within_its_step(lapses: list[int], part: float) -> None:
    exact = sorted(lapses)[max(0, -(-int(part * 100) * len(lapses) // 100) - 1)]
    told = of(lapses).quantile(part)
    assert told is not None
    assert exact / 1.3 <= told <= exact * 1.3


def test_empty_histogram_has_no_quantile() -> None:
    assert Histogram().quantile(0.5) is None

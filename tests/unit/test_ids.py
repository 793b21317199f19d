"""Ids sort by fire time."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from duetime.model.ids import SEGMENTS, Ids, fire_id, fire_times_of, first_id, is_fire_id, segment_of

BEGIN = 1_790_000_000_000_000
moments = st.integers(BEGIN, BEGIN + 5_000)  # many within a millisecond
SCHEDULE = UUID(int=5)


@given(st.lists(st.tuples(moments, st.booleans()), min_size=2, max_size=30))
def test_ids_of_jobs_and_fires_sort_by_fire_time(wanted: list[tuple[int, bool]]) -> None:
    ids = Ids()
    made = [(fire_id(SCHEDULE, moment) if fires else ids.new(moment), moment) for moment, fires in wanted]
    assert [moment for _, moment in sorted(made)] == sorted(moment for moment, _ in wanted)


@given(moments)
def test_first_id_is_a_bound_to_the_microsecond(moment: int) -> None:
    [made] = Ids().new_many([moment])
    for some_id in (made, fire_id(SCHEDULE, moment)):
        assert first_id(moment) <= some_id < first_id(moment + 1)
        low, high = fire_times_of(some_id.hex[:12])
        assert low <= moment < high


def test_first_id_of_an_instant_before_1970_is_below_every_id() -> None:
    assert first_id(-1) <= Ids().new(0)


def test_digits_after_every_fire_time_have_bounds() -> None:
    low, high = fire_times_of("ffff")
    assert first_id(BEGIN) < first_id(low) < first_id(high)
    assert first_id(high).hex.startswith("f" * 12)


def test_fires_are_told_from_submitted_jobs() -> None:
    assert is_fire_id(fire_id(SCHEDULE, BEGIN))
    assert not any(map(is_fire_id, Ids().new_many([BEGIN] * 100)))


def test_ids_are_of_version_7_and_differ() -> None:
    made = Ids().new_many([BEGIN] * 1_000)
    assert {some_id.version for some_id in made} == {7}
    assert len(set(made)) == 1_000
    assert {segment_of(some_id) for some_id in made} == set(range(SEGMENTS))

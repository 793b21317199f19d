"""The calendar counts exactly what walking every fire would count."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.model import instant
from duetime.model.calendar import BUCKETS, Coming, FireCounter, Grid
from duetime.model.schedule import Schedule
from duetime.model.when import At, Cron, Every, RRule, When
from duetime.testing.conformance.drafts import schedule

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "America/Sao_Paulo",
]
EXPRESSIONS = [
    "* * * * *", "0 * * * *", "*/7 3-9 * * *", "30 2 * * *", "30 1,2 * * SUN", "0 0 1 * *", "15 */2 * * MON-FRI", "5 4 L * *",
    "0 0 13 * FRI", "*/20 0 9 * * 1#2", "H H * * *", "@every 90s", "@daily", "10,40 59 23 * * *",
]  # fmt: skip
moments = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 1)).map(
    lambda value: instant.to_micros(value.replace(tzinfo=UTC))
)
intervals = st.sampled_from(["1s", "7s", "27s", "1m", "20m", "45m", "1h", "5h", "1d", "25h", "1m0.5s", "1w"])
whens: st.SearchStrategy[When] = st.one_of(
    st.builds(Cron, st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES), st.sampled_from(["a", "b"])),
    st.builds(Every, intervals),
    st.builds(lambda text, anchor: Every(text, instant.to_datetime(anchor)), intervals, moments),
    st.builds(lambda moment: At(instant.to_datetime(moment)), moments),
    st.sampled_from(ZONES).map(lambda tz: RRule("DTSTART:20260101T023000\nFREQ=DAILY", tz)),
)


def coming(when: When, **fields: object) -> Coming:
    return Coming(UUID(int=1), "a", "t", when, **fields)  # type: ignore[arg-type]


def counted(grid: Grid, *schedules: Coming) -> list[tuple[int, int]]:
    tally = FireCounter(grid)
    for one in schedules:
        tally.add(one)
    while tally.work(50):
        pass
    return tally.result()


def walked(grid: Grid, *schedules: Coming) -> list[tuple[int, int]]:
    """One by one."""
    edges = [edge * instant.SECOND for edge in grid.edges]
    counts = [0] * (len(edges) - 1)
    for one in schedules:
        for moment in one.fires(grid.since, grid.end):
            counts[bisect_right(edges, moment) - 1] += 1
    return list(zip(edges, counts, strict=False))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(whens, min_size=1, max_size=4),
    moments,
    st.integers(1, 3 * 86_400 * 1_000_000),
    st.sampled_from(sorted(BUCKETS)),
    st.sampled_from(ZONES),
)
def test_counting_by_the_day_is_counting_one_by_one(
    found: list[When], start: int, length: int, bucket: str, tz: str
) -> None:
    """Whatever the zones do."""
    grid = Grid(start, start + length, BUCKETS[bucket], tz)
    schedules = [coming(when) for when in [*found, found[0]]]
    assert counted(grid, *schedules) == walked(grid, *schedules)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.integers(0, 1),
    st.sampled_from(["1h", "1d"]),
    st.sampled_from(ZONES),
)
def test_around_changes_of_the_clocks(text: str, tz: str, half: int, bucket: str, shown: str) -> None:
    """Five weeks around the last Sundays of March and October."""
    start = instant.to_micros(datetime(2027, 3 if half else 10, 3, 11, 7, 13, tzinfo=UTC))
    grid = Grid(start, start + 35 * 86_400 * instant.SECOND, BUCKETS[bucket], shown)
    one = coming(Cron(text, tz, "k"))
    assert counted(grid, one) == walked(grid, one)


@given(whens, moments, st.integers(0, 86_400 * 1_000_000))
@settings(max_examples=60, deadline=None)
def test_bounds_of_a_schedule_hold(when: When, start: int, shift: int) -> None:
    grid = Grid(start, start + 86_400 * 1_000_000, BUCKETS["1h"])
    schedules = [coming(when), coming(when, start_at=start + shift), coming(when, last=start + shift)]
    assert counted(grid, *schedules) == walked(grid, *schedules)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(whens, min_size=1, max_size=6), moments, st.integers(0, 400), st.sampled_from(["5m", "1h", "1d"])
)
def test_hurried_count_is_never_too_high(found: list[When], start: int, steps: int, bucket: str) -> None:
    """After a hurried count, each bucket holds at least zero and at most the true number."""
    grid = Grid(start, start + 86_400 * 1_000_000, BUCKETS[bucket])
    schedules = [coming(when) for when in found]
    tally = FireCounter(grid)
    for one in schedules:
        tally.add(one)
    tally.work(steps)
    tally.hurry()
    while tally.work(50):
        pass
    for (_, part), (_, whole) in zip(tally.result(), walked(grid, *schedules), strict=True):
        assert 0 <= part <= whole


def test_days_begin_where_they_begin_in_the_zone() -> None:
    start = instant.to_micros(datetime(2027, 3, 27, 12, tzinfo=UTC))
    grid = Grid(start, start + 3 * 86_400 * instant.SECOND, BUCKETS["1d"], "Europe/Berlin")
    days = [instant.to_datetime(edge * instant.SECOND) for edge in grid.edges]
    assert days[0] == datetime(2027, 3, 26, 23, tzinfo=UTC)
    assert [after - before for before, after in pairwise(days)][1] == timedelta(hours=23)


def test_fires_before_now_do_not_count() -> None:
    start = instant.to_micros(datetime(2027, 1, 1, tzinfo=UTC))
    half = start + 12 * 3_600 * instant.SECOND
    grid = Grid(start, start + 86_400 * instant.SECOND, BUCKETS["1h"], since=half)
    counts = [count for _, count in counted(grid, coming(Every("30m")), coming(Cron("*/30 * * * *")))]
    assert counts == [0] * 12 + [4] * 12
    late = Grid(start, half, BUCKETS["1h"], since=half + 1)
    assert sum(count for _, count in counted(late, coming(Every("30m")), coming(Cron("* * * * *")))) == 0


def test_runs_that_are_left_end_it() -> None:
    """Fires that are planned already are among the runs so far."""
    start = instant.to_micros(datetime(2027, 1, 1, tzinfo=UTC))
    hour = 3_600 * instant.SECOND
    made = Schedule(
        replace(schedule("a", when=Every("1h")), max_runs=5),
        UUID(int=1),
        1,
        0,
        False,
        None,
        start + 3 * hour,
        start + 2 * hour,
        3,
        0,
        0,
    )

    def fires(**changes: Any) -> list[int]:
        one = Coming.of(replace(made, **changes))
        return (
            []
            if one is None
            else [(moment - start) // hour for moment in one.fires(start, start + 24 * hour)]
        )

    assert fires() == [0, 1, 2, 3, 4]
    assert fires(runs=5, next_fire_time=None) == [0, 1, 2]
    assert fires(draft=replace(made.draft, max_runs=None, end_at=start + 4 * hour)) == [0, 1, 2, 3, 4]
    assert fires(draft=replace(made.draft, end_at=start + 3 * hour)) == [0, 1, 2, 3]
    assert fires(paused=True) == []

"""The forecast: compared with a simple count of the same fires, and over clock changes."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.model.forecast import HOUR, Effect, Planned, forecast
from duetime.model.instant import MINUTE, SECOND, to_micros
from duetime.model.when import At, Cron, Every, RRule, When
from tests.cli.conftest import Duetime

DAY = 24 * HOUR
START = to_micros(datetime(2030, 3, 30, 12, tzinfo=UTC))
WHENS: list[When] = [
    Cron("*/7 * * * *"), Cron("0 * * * *", "Asia/Kolkata"), Cron("30 2 * * *", "Europe/Berlin"),
    Every("17m"), Every("20s"),
    At(datetime(2030, 3, 30, 13, tzinfo=UTC)), RRule("FREQ=HOURLY;BYMINUTE=0;BYSECOND=0", "America/New_York"),
]  # fmt: skip


def plain_count(planned: list[Planned], start: int, end: int) -> Counter[int]:
    counts: Counter[int] = Counter()
    for one in planned:
        moment, runs = one.when.next_us(start - 1), 0
        while moment is not None and moment < end and (one.end_at is None or moment <= one.end_at):
            if one.start_at is None or moment >= one.start_at:
                if one.runs_left is not None and runs >= one.runs_left:
                    break
                counts[moment] += 1
                runs += 1
            moment = one.when.next_us(moment)
    return counts


planned_ones = st.builds(
    Planned,
    name=st.text(max_size=3),
    when=st.sampled_from(WHENS),
    start_at=st.none() | st.integers(START - DAY, START + DAY),
    end_at=st.none() | st.integers(START - DAY, START + DAY),
    runs_left=st.none() | st.integers(0, 20),
)


@pytest.mark.slow
@given(st.lists(planned_ones, max_size=4), st.integers(-DAY // 2, DAY // 2), st.integers(1, DAY))
@settings(deadline=None, max_examples=30)
def test_forecast_counts_the_same_fires_as_a_simple_loop(
    planned: list[Planned], offset: int, length: int
) -> None:
    start, end = START + offset, START + offset + length
    counts, found = plain_count(planned, start, end), forecast(planned, start, end)
    minutes: Counter[int] = Counter()
    for moment, fires in counts.items():
        minutes[moment - moment % MINUTE] += fires
    assert found.fires == counts.total()
    assert sum(fires for _, fires in found.by_hour) == counts.total()
    assert [hour for hour, _ in found.by_hour] == list(range(start - start % HOUR, end, HOUR))
    assert (found.peak or (0, 0))[1] == max(minutes.values(), default=0)
    assert [herd.count for herd in found.herds] == sorted(
        (fires for fires in counts.values() if fires > 1), reverse=True
    )[:10]
    assert all(counts[herd.at] == herd.count for herd in found.herds)


@pytest.mark.parametrize(
    ("planned", "hours"),
    [
        (Planned("s", Every("1h")), [0, 1, 2, 3]),
        (Planned("s", Every("1h"), start_at=HOUR), [1, 2, 3]),
        (Planned("s", Every("1h"), start_at=HOUR + 1, end_at=3 * HOUR), [2, 3]),
        (Planned("s", Every("1h"), runs_left=2), [0, 1]),
        (Planned("s", Every("1h"), runs_left=0), []),
    ],
)
def test_forecast_respects_start_end_and_max_runs(planned: Planned, hours: list[int]) -> None:
    assert [hour // HOUR for hour, fires in forecast([planned], 0, 4 * HOUR).by_hour if fires] == hours


def test_busiest_minute_counts_all_its_fires() -> None:
    assert forecast(
        [Planned("a", Every("20s")), Planned("b", At(datetime(1970, 1, 1, 0, 5, 1, tzinfo=UTC)))], 0, HOUR
    ).peak == (
        5 * MINUTE,
        4,
    )


def test_forecast_stops_early_at_too_many_fires() -> None:
    found = forecast([Planned("s", Every("1s"))], 0, DAY, most_fires=100)
    assert (found.fires, found.end) == (100, 100 * SECOND)


@pytest.mark.parametrize(
    ("when", "effect"),
    [
        (Cron("30 2 * * *", "Europe/Berlin"), Effect("s", "moved", 1)),
        (Cron("0,30 2 * * *", "Europe/Berlin"), Effect("s", "moved", 2)),
        (Cron("*/20 * * * *", "Europe/Berlin"), Effect("s", "left_out", 3)),
        (Cron("30 4 * * *", "Europe/Berlin"), None),
        (RRule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", "Europe/Berlin"), Effect("s", "moved", 1)),
        (
            RRule("DTSTART;TZID=Europe/Berlin:20300101T023000\nRRULE:FREQ=DAILY", "Europe/Berlin"),
            Effect("s", "moved", 1),
        ),
    ],
)
def test_forecast_over_clocks_going_forward(when: When, effect: Effect | None) -> None:
    (change,) = forecast([Planned("s", when)], START, START + DAY).clock_changes
    assert (change.tz, change.at, change.shift) == (
        "Europe/Berlin",
        to_micros(datetime(2030, 3, 31, 1, tzinfo=UTC)),
        3600,
    )
    assert change.effects == (() if effect is None else (effect,))


@pytest.mark.parametrize(
    ("when", "effect"),
    [
        (Cron("30 2 * * *", "Europe/Berlin"), Effect("s", "once", 1)),
        (Cron("*/20 * * * *", "Europe/Berlin"), Effect("s", "repeated", 3)),
        (Cron("30 4 * * *", "Europe/Berlin"), None),
    ],
)
def test_forecast_over_clocks_going_back(when: When, effect: Effect | None) -> None:
    start = to_micros(datetime(2030, 10, 26, 12, tzinfo=UTC))
    (change,) = forecast([Planned("s", when)], start, start + DAY).clock_changes
    assert change.shift == -3600
    assert change.effects == (() if effect is None else (effect,))


def test_intervals_and_utc_have_no_clock_changes() -> None:
    planned = [
        Planned("a", Every("1h")),
        Planned("b", Cron("@every 1h", "Europe/Berlin")),
        Planned("c", Cron("0 * * * *")),
    ]
    assert forecast(planned, START, START + DAY).clock_changes == ()


GIVEN = (
    "--cron",
    "30 2 * * *",
    "--cron",
    "0 * * * *",
    "--every",
    "1h",
    "--tz",
    "Europe/Berlin",
    "--from",
    "2030-03-30T12:00:00Z",
)


def test_simulate_shows_hours_herds_and_clock_changes(duetime: Duetime) -> None:
    shown = duetime("simulate", *GIVEN).out
    assert shown.startswith("3 schedules, 49 fires from ")
    assert "30 2 * * *: 1 fire in the gap: run once, right after it" in shown
    assert "30 2 * * *, 0 * * * *, every 1h" in shown


def test_simulate_json_has_stable_fields(duetime: Duetime) -> None:
    found = duetime("simulate", *GIVEN, "--json").json
    assert list(found) == [
        "start",
        "end",
        "schedules",
        "fires",
        "by_hour",
        "peak_minute",
        "herds",
        "clock_changes",
    ]
    assert found["peak_minute"] == {"minute": "2030-03-31T01:00:00Z", "fires": 3}
    assert found["herds"][0] == {
        "at": "2030-03-31T01:00:00Z",
        "fires": 3,
        "schedules": ["30 2 * * *", "0 * * * *", "every 1h"],
    }
    assert found["clock_changes"][0]["effects"] == [
        {"schedule": "30 2 * * *", "effect": "moved", "fires": 1},
        {"schedule": "0 * * * *", "effect": "left_out", "fires": 1},
    ]


def test_simulate_uses_active_stored_schedules(duetime: Duetime) -> None:
    for name in ("a", "b", "c"):
        duetime("schedule", "add", name, "t", "--every", "1h")
    duetime("schedule", "pause", "b")
    found = duetime("simulate", "--days", "2", "--json").json
    assert (found["schedules"], found["fires"]) == (2, 96)


@pytest.mark.parametrize(
    "options",
    [["--days", "0"], ["--from", "now"], ["--cron", "x"], ["--cron", "* * * * *", "--tz", "Nowhere"]],
)
def test_invalid_simulations_are_usage_errors(duetime: Duetime, options: list[str]) -> None:
    assert duetime("simulate", *options).status == 2

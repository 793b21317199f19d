"""What the cron language takes, what it refuses and how it says so."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.errors import InvalidWhen, NeverFires, UnknownZone
from duetime.model import cron
from duetime.model.when import Cron, Every
from tests.unit.time.reference import Expression

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
HASHED = [(59, 0), (35, 3)]


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("*/15 * * * *", "minutes", (0, 15, 30, 45)),
        ("5/20 * * * *", "minutes", (5, 25, 45)),
        ("50-10/5 * * * *", "minutes", (0, 5, 10, 50, 55)),
        ("1,2,3-5,2 * * * *", "minutes", (1, 2, 3, 4, 5)),
        ("*/60 * * * *", "minutes", (0,)),
        ("0 22-2 * * *", "hours", (0, 1, 2, 22, 23)),
        ("0 22-4/3 * * *", "hours", (1, 4, 22)),
        ("0 0 28-3 * *", "month_days", (1, 2, 3, 28, 29, 30, 31)),
        ("0 0 ? * ?", "month_days", tuple(range(1, 32))),
        ("0 0 1 jan,Mar,DEC *", "months", (1, 3, 12)),
        ("0 0 1 nov-feb *", "months", (1, 2, 11, 12)),
        ("0 0 * * MON-fri", "weekdays", (1, 2, 3, 4, 5)),
        ("0 0 * * FRI-MON", "weekdays", (0, 1, 5, 6)),
        ("0 0 * * 0", "weekdays", (0,)),
        ("0 0 * * 7", "weekdays", (0,)),
        ("0 0 * * 5-7", "weekdays", (0, 5, 6)),
        ("0 0 * * 7-2", "weekdays", (0, 1, 2)),
        ("0 0 * * 0-7", "weekdays", (0, 1, 2, 3, 4, 5, 6)),
        ("0 0 * * 7-7", "weekdays", (0,)),
        ("0 0 * * */2", "weekdays", (0, 2, 4, 6)),
        ("0 0 * * 1/2", "weekdays", (1, 3, 5)),
        ("0 0 * * 7/2", "weekdays", (0, 2, 4, 6)),
        ("0 0 L * *", "last_offsets", (0,)),
        ("0 0 L-3,l * *", "last_offsets", (0, 3)),
        ("0 0 LW * *", "last_workday_offsets", (0,)),
        ("0 0 L-2W * *", "last_workday_offsets", (2,)),
        ("0 0 15W,1w * *", "nearest_workdays", (1, 15)),
        ("0 0 * * FRI#3,2#1", "nth_weekdays", ((2, 1), (5, 3))),
        ("0 0 * * 7L,friL", "last_weekdays", (0, 5)),
        ("*/20 * * * * *", "seconds", (0, 20, 40)),
        ("0 0 * * *", "seconds", (0,)),
        ("@hourly", "hours", tuple(range(24))),
        ("@WEEKLY", "weekdays", (0,)),
        ("@yearly", "months", (1,)),
        ("@annually", "month_days", (1,)),
    ],
)
def test_every_field_is_read(text: str, field: str, values: tuple[object, ...]) -> None:
    assert getattr(cron.parse(text), field) == values


@pytest.mark.parametrize(
    ("text", "fixed", "either"),
    [
        ("30 2 * * *", True, False),
        ("0 */2 * * *", False, False),
        ("*/15 2 * * *", False, False),
        ("0,*/15 2 1 * 1", True, True),
        ("? 2 1 * *", False, False),
        ("H H 1 * ?", True, False),
        ("H/15 2 1 * 1", True, True),
        ("*/5 30 2 */2 * 1", True, False),
        ("30 2 1-31 * 0-6", True, True),
        ("30 2 L * FRI#1", True, True),
    ],
)
def test_fixed_times_and_the_day_rule(text: str, fixed: bool, either: bool) -> None:
    """`*` counts where the field begins with it, as in Debian's cron; `?` is `*`, and `H` is not."""
    pattern = cron.parse(text)
    assert (pattern.fixed_time, pattern.either_day) == (fixed, either)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("* * * * * * *", "7 fields"),
        ("60 * * * *", "minute '60' is outside 0-59"),
        ("* 24 * * *", "hour '24' is outside 0-23"),
        ("* * 0 * *", "day of month '0' is outside 1-31"),
        ("* * 32 * *", "day of month '32'"),
        ("* * * 13 *", "month '13'"),
        ("* * * FOO *", "month 'FOO' is invalid: month takes 1-12 or JAN-DEC"),
        ("* * * * 8", "day of week '8'"),
        ("* * * * MONDAY", "day of week 'MONDAY'"),
        ("60 * * * * *", "second '60'"),
        ("*/0 * * * *", "step outside 1-60"),
        ("1-59/9999999 * * * *", "step outside 1-60"),
        ("*/99999999999999999999 * * * *", "minute"),
        ("*/-1 * * * *", "minute '*/-1' is invalid"),
        ("*/ * * * *", "minute '*/' is invalid"),
        ("1-2-3 * * * *", "minute '1-2-3' is invalid"),
        ("-1 * * * *", "minute '-1' is invalid"),
        ("1- * * * *", "minute '1-' is invalid"),
        ("1,,2 * * * *", "minute '' is empty"),
        (", * * * *", "minute '' is empty"),
        ("1.5 * * * *", "minute '1.5'"),
        ("+1 * * * *", "minute '+1'"),
        ("1_0 * * * *", "minute '1_0'"),
        ("** * * * *", "minute '**'"),
        ("*5 * * * *", "minute '*5'"),
        ("*-5 * * * *", "minute '*-5'"),
        ("L * * * *", "minute 'L'"),
        ("* * L-31 * *", "at most 30 days back"),
        ("* * L5 * *", "day of month 'L5'"),
        ("* * W * *", "day of month 'W'"),
        ("* * 32W * *", "day of month '32W'"),
        ("* * * * L", "write 5L for the last Friday"),
        ("* * * * 5#6", "use #1 to #5"),
        ("* * * * 5#0", "use #1 to #5"),
        ("* * * * #1", "day of week '#1'"),
        ("* * * * 1-5#2", "day of week '1-5#2'"),
        ("* * * * 1-5L", "day of week '1-5L'"),
        ("H(5 * * * *", "write H, H(1-5) or H/15"),
        ("H(9-5) * * * *", "ends before it starts"),
        ("H(0-60) * * * *", "outside 0-59"),
        ("HH * * * *", "write H, H(1-5) or H/15"),
        ("@never", "use one of @yearly"),
        ("@daily 5", "use one of @yearly"),
        ("@every", "is not a duration"),
        ("@every 10", "is not a duration"),
        ("@every 1ms", "shortest interval is 100ms"),
        ("@reboot", "use one of @yearly"),
        ("٣ * * * *", "outside ASCII"),
        ("\uff13 * * * *", "outside ASCII"),
        ("0 0 * * \uff2d\uff2f\uff2e", "outside ASCII"),
        ("0" * 257, "the maximum is 256"),
        (",".join(["1"] * 65) + " * * * *", "minute lists 65 items: the maximum is 64"),
        ("\0 * * * *", "minute"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    """The message names the field of the expression and what it takes."""
    with pytest.raises(InvalidWhen) as refused:
        Cron(text)
    assert refused.value.field == "cron"
    assert words in str(refused.value)


@pytest.mark.parametrize("value", [None, 5, ["* * * * *"], b"* * * * *"])
def test_value_that_is_not_text_is_rejected(value: object) -> None:
    with pytest.raises(InvalidWhen, match=r"cron: .* is not text"):
        Cron(value)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Mars/Olympus",
        "Europe",
        "../etc/passwd",
        "/etc/localtime",
        "right/UTC",
        "localtime",
        "Ünterwelt",
        "a" * 65,
        "\0",
    ],
)
def test_unknown_zones_are_refused(name: str) -> None:
    with pytest.raises(UnknownZone) as refused:
        Cron("* * * * *", name)
    assert refused.value.field == "tz"


@pytest.mark.parametrize("value", [None, 1, ["UTC"]])
def test_a_zone_that_is_not_text_is_refused(value: object) -> None:
    with pytest.raises(UnknownZone):
        Cron("* * * * *", value)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    "text",
    [
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "0 0 31 2 ?",
        "0 0 30,31 2 *",
        "0 0 30W 2 *",
        "0 0 31W 4,6,9,11 *",
        "0 0 L-29,L-30 2 ?",
        "0 0 */30 2 1#5",
        "* * 31 FEB-FEB *",
    ],
)
def test_never_fires(text: str) -> None:
    """Refused when made, and quickly."""
    began = time.process_time()
    with pytest.raises(NeverFires, match=r"cron: .* never fires"):
        Cron(text)
    assert time.process_time() - began < 2, "no machine is that slow: it walks"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("0 0 29 2 *", date(2028, 2, 29)),
        ("0 0 29 2 */7", date(2032, 2, 29)),
        ("0 0 29 2 1", date(2026, 2, 2)),
        ("0 0 */28 2 2#5", date(2028, 2, 29)),
        ("0 0 L 2 ?", date(2026, 2, 28)),
        ("0 0 29W 2 ?", date(2028, 2, 29)),
        ("0 0 L-28 2 ?", date(2028, 2, 1)),
        ("0 0 1W 8 ?", date(2026, 8, 3)),
        ("0 0 31W 5 ?", date(2026, 5, 29)),
        ("0 0 LW 1 ?", date(2026, 1, 30)),
        ("0 0 ? 1 FRI#5", date(2026, 1, 30)),
        ("0 0 ? 2 FRIL", date(2026, 2, 27)),
    ],
)
def test_rare_days(text: str, first: date) -> None:
    """What fires seldom does fire."""
    assert Cron(text).next(NEW_YEAR) == datetime(first.year, first.month, first.day, tzinfo=UTC)


def test_centuries_without_a_leap_day() -> None:
    fires = Cron("0 0 29 2 *").preview(3, after=datetime(2092, 3, 1, tzinfo=UTC))
    assert [fire.year for fire in fires] == [2096, 2104, 2108]
    assert Cron("0 0 29 2 *").next(datetime(1999, 1, 1, tzinfo=UTC)) == datetime(2000, 2, 29, tzinfo=UTC)


day_of_month = st.lists(
    st.one_of(
        st.integers(1, 31).map(str),
        st.sampled_from(
            [
                "*",
                "*/2",
                "*/7",
                "L",
                "LW",
                "L-5",
                "L-3W",
                "1W",
                "15W",
                "31W",
                "28-3",
                "10-20",
                "10-20/3",
                "5/6",
            ]
        ),
    ),
    min_size=1,
    max_size=3,
).map(",".join)
day_of_week = st.lists(
    st.one_of(
        st.integers(0, 6).map(str),
        st.sampled_from(
            ["*", "*/2", "MON-FRI", "FRI-MON", "5L", "SUNL", "2#1", "MON#5", "SAT#3", "1-5/2", "3-1"]
        ),
    ),
    min_size=1,
    max_size=3,
).map(",".join)
months = st.one_of(st.just("*"), st.sampled_from(["2", "FEB,APR", "NOV-FEB", "*/5", "6-9/2", "12"]))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(day_of_month, months, day_of_week, st.dates(date(1970, 1, 1), date(2200, 1, 1)))
def test_days_match_their_definition(month_day: str, month: str, weekday: str, start: date) -> None:
    """The next day found is the first that the definition allows; none in between is passed over."""
    text = f"0 0 {month_day} {month} {weekday}"
    expression = Expression(text)
    try:
        fires = Cron(text).preview(3, after=datetime(start.year, start.month, start.day, tzinfo=UTC))
    except NeverFires:
        assert not any(expression.day_matches(start + timedelta(days=distance)) for distance in range(1461))
        return
    wanted = [
        day for distance in range(1, 1462) if expression.day_matches(day := start + timedelta(days=distance))
    ][:3]
    found = [fire.date() for fire in fires]
    assert found[: len(wanted)] == wanted
    assert all(day > start + timedelta(days=1461) for day in found[len(wanted) :])


@settings(max_examples=250, deadline=timedelta(seconds=20))
@given(
    st.text(alphabet="0123456789*/-,?LW#H()@ abcMONJANFRIevry٣é\0\n\t", max_size=300),
    st.sampled_from(["UTC", "Europe/Berlin"]),
)
def test_any_text_is_read_or_refused(text: str, tz: str) -> None:
    """No other exception than InvalidWhen, and no long thought."""
    try:
        when = Cron(text, tz)
    except InvalidWhen:
        return
    found = when.next(NEW_YEAR)
    assert found is None or found > NEW_YEAR


item = st.one_of(
    st.integers(0, 60).map(str),
    st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda ends: f"{ends[0]}-{ends[1]}"),
    st.tuples(st.sampled_from(["*", "H", "5", "1-20", "H(2-9)"]), st.integers(0, 70)).map(
        lambda pair: f"{pair[0]}/{pair[1]}"
    ),
    st.sampled_from(["*", "?", "L", "LW", "15W", "FRI#2", "5L", "JAN", "MON", "H", "L-4", "", "1-2-3"]),
)


@pytest.mark.slow
@settings(max_examples=250, deadline=timedelta(seconds=20))
@given(st.lists(st.lists(item, min_size=1, max_size=5).map(",".join), min_size=4, max_size=7).map(" ".join))
def test_almost_right_expressions_are_read_or_refused(text: str) -> None:
    """With texts that get past the first look."""
    try:
        when = Cron(text, "America/New_York", key="k")
    except InvalidWhen:
        return
    found = when.next(NEW_YEAR)
    assert found is None or found > NEW_YEAR
    assert when.next(NEW_YEAR) == found


@pytest.mark.parametrize(
    "text",
    ["1," * 50_000, "*/1," * 60 + "*/1 * * * *", "(" * 256, "H(" * 128, "-" * 256, "1-59/9999999 * * * *"],
)
def test_hostile_texts_cost_nothing(text: str) -> None:
    began = time.process_time()
    with suppress(InvalidWhen):
        Cron(text)
    assert time.process_time() - began < 2, "no machine is that slow"


def test_hash_is_stable_and_spreads() -> None:
    """The places are part of the promise: a new release must not move anybody's schedule."""
    assert [
        cron.parse("H H * * *", key).minutes + cron.parse("H H * * *", key).hours
        for key in ("nightly", "report")
    ] == HASHED
    minutes = {cron.parse("H * * * *", f"schedule-{number}").minutes[0] for number in range(1000)}
    assert len(minutes) == 60


def test_hash_within_ranges_and_steps() -> None:
    for number in range(200):
        key = f"schedule-{number}"
        assert 1 <= cron.parse("0 H(1-5) * * *", key).hours[0] <= 5
        assert 1 <= cron.parse("0 0 H * *", key).month_days[0] <= 28
        quarter = cron.parse("H/15 * * * *", key).minutes
        assert len(quarter) == 4
        assert {later - earlier for earlier, later in pairwise(quarter)} == {15}
        tens = cron.parse("H(0-29)/10 * * * *", key).minutes
        assert len(tens) == 3
        assert tens[-1] < 30


def test_every_macro_is_the_interval() -> None:
    assert Cron("@every 1h30m").preview(5, after=NEW_YEAR) == Every("1h30m").preview(5, after=NEW_YEAR)
    assert Cron("@EVERY 10s", "Europe/Berlin").next(NEW_YEAR) == NEW_YEAR + timedelta(seconds=10)

"""A `when` in words: exact, so that two that read the same fire at the same instants."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.errors import InvalidInput
from duetime.model.describe.when import describe
from duetime.model.instant import SECOND, to_micros
from duetime.model.when import At, Cron, Every, RRule, When

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
BERLIN = "Europe/Berlin"
CRON = [
    ("* * * * *", "every minute"),
    ("*/5 * * * *", "every 5 minutes"),
    ("0-59/5 * * * *", "every 5 minutes"),
    ("*/7 * * * *", "at every 7th minute from 0 to 56 of every hour"),
    ("5,35 * * * *", "at minutes 5 and 35 of every hour"),
    ("*/10 9-17 * * 1-5", "every 10 minutes from 09:00 to 17:59, Monday to Friday"),
    ("*/10 22-2 * * *", "every 10 minutes from 22:00 to 02:59, every day"),
    ("*/10 1,3,8 * * *", "every 10 minutes of hours 1, 3 and 8, every day"),
    ("5,35 0-4 * * *", "at minutes 5 and 35 of hours 0 to 4, every day"),
    ("0 * * * *", "every hour"),
    ("@hourly", "every hour"),
    ("15 */2 * * *", "every 2 hours at minute 15"),
    ("0 9-17 * * *", "every hour from 09:00 to 17:00, every day"),
    ("30 0,1,3,5,7,9,11 * * *", "at 00:30, 01:30, 03:30, 05:30, 07:30, 09:30 and 11:30, every day"),
    ("0 9,17 * * *", "at 09:00 and 17:00, every day"),
    ("@daily", "at 00:00, every day"),
    ("@midnight", "at 00:00, every day"),
    ("@weekly", "at 00:00, Sunday"),
    ("@monthly", "at 00:00, on day 1 of the month"),
    ("@yearly", "at 00:00, on day 1 of the month, in January"),
    ("30 0 9 * * *", "at 09:00:30, every day"),
    ("* * * * * *", "every second"),
    ("*/5 * * * * *", "every 5 seconds"),
    ("30 * * * * *", "at second 30 of every minute"),
    ("* 0,59 * * * *", "every second of minutes 0 and 59 of every hour"),
    ("*/10 * 9-17 * * *", "every 10 seconds of hours 9 to 17, every day"),
    ("30 2 * * MON-FRI", "at 02:30, Monday to Friday"),
    ("30 2 * * FRI-MON", "at 02:30, Friday to Monday"),
    ("30 2 * * 0,6", "at 02:30, Saturday and Sunday"),
    ("30 2 * * 7", "at 02:30, Sunday"),
    ("30 2 * * MON,WED,FRI", "at 02:30, Monday, Wednesday and Friday"),
    ("0 0 ? * *", "at 00:00, every day"),
    ("0 0 1 1 *", "at 00:00, on day 1 of the month, in January"),
    ("0 0 1-7,15 * *", "at 00:00, on days 1 to 7 and 15 of the month"),
    ("0 0 */2 * *", "at 00:00, on every 2nd day from 1 to 31 of the month"),
    ("0 0 * NOV-FEB *", "at 00:00, every day, from November to February"),
    ("0 0 * JAN,JUL *", "at 00:00, every day, in January and July"),
    ("0 0 13 * FRI", "at 00:00, on day 13 of the month or on Friday"),
    ("0 0 */2 * 1", "at 00:00, on every 2nd day from 1 to 31 of the month if that is Monday"),
    ("0 0 */10 * 6,0", "at 00:00, on every 10th day from 1 to 31 of the month if that is Saturday or Sunday"),
    ("0 0 1-31 * 1", "at 00:00, every day"),
    ("0 0 L * *", "at 00:00, on the last day of the month"),
    ("0 0 L-1 * *", "at 00:00, on the 2nd last day of the month"),
    ("0 0 1,L * *", "at 00:00, on day 1 and the last day of the month"),
    ("0 0 LW 1-3 *", "at 00:00, on the last workday of the month, from January to March"),
    ("0 0 L-2W * *", "at 00:00, on the workday nearest the 3rd last day of the month"),
    ("0 12 15W * *", "at 12:00, on the workday nearest day 15 of the month"),
    ("0 12 * * FRI#3", "at 12:00, on the third Friday of the month"),
    ("0 12 * * 5L", "at 12:00, on the last Friday of the month"),
    ("0 12 * * 1,5#3", "at 12:00, on Monday and the third Friday of the month"),
]
OTHERS: list[tuple[When, str]] = [
    (Every("5m"), "every 5 minutes"),
    (Every("1h"), "every hour"),
    (Every("90s"), "every minute and 30 seconds"),
    (Every("100ms"), "every 100 milliseconds"),
    (Every(timedelta(microseconds=1_234_567)), "every second, 234 milliseconds and 567 microseconds"),
    (Every("1w"), "every week"),
    (Every("1d", anchor=NOON), "every day, counted from 2026-06-01 12:00:00 UTC"),
    (Every("1h", anchor=NOON), "every hour"),
    (Cron("@every 10s", BERLIN), "every 10 seconds"),
    (At(NOON), "once, at 2026-06-01 12:00:00 UTC"),
    (At(NOON + timedelta(microseconds=5)), "once, at 2026-06-01 12:00:00.000005 UTC"),
    (Cron("H 2 * * *", key="nightly"), "at 02:59, every day, UTC"),
    (Cron("30 2 * * *", BERLIN), "at 02:30, every day, Europe/Berlin time"),
    (Cron("*/30 2 * * *", BERLIN), "at 02:00 and 02:30, in real time, every day, Europe/Berlin time"),
    (Cron("0 0-23 * * *", BERLIN), "every hour, as fixed times, Europe/Berlin time"),
]
RULES = [
    ("FREQ=DAILY", "every day, at 00:00, UTC"),
    ("DTSTART:20260101T090000\nFREQ=DAILY", "every day, at 09:00, UTC, from 2026-01-01 09:00:00 on"),
    (
        "FREQ=WEEKLY;BYDAY=MO,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "every week, on Monday and Friday, at 09:00, UTC",
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO",
        "every 2 weeks, on Monday, at 00:00, with weeks from Sunday on, UTC",
    ),
    ("FREQ=WEEKLY;WKST=SU;BYDAY=MO", "every week, on Monday, at 00:00, UTC"),
    ("FREQ=MONTHLY;BYDAY=-1FR", "every month, on the last Friday of the month, at 00:00, UTC"),
    (
        "FREQ=MONTHLY;BYDAY=2MO,-2TU",
        "every month, on the 2nd last Tuesday and the 2nd Monday of the month, at 00:00, UTC",
    ),
    (
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,-1;BYHOUR=17",
        "every month, on Monday to Friday, at 17:00, of these only the 1st and last in each month, UTC",
    ),
    ("FREQ=YEARLY;BYDAY=20MO", "every year, on the 20th Monday of the year, at 00:00, UTC"),
    (
        "FREQ=YEARLY;BYWEEKNO=1,-1;BYDAY=MO",
        "every year, in week 1 and the last week of the year, only on Monday, at 00:00, UTC",
    ),
    (
        "FREQ=YEARLY;BYYEARDAY=1,100,-1",
        "every year, on days 1 and 100 and the last day of the year, at 00:00, UTC",
    ),
    (
        "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
        "every month, on day 13 of the month, only on Friday, at 00:00, UTC",
    ),
    ("FREQ=HOURLY;INTERVAL=3;BYHOUR=9,12", "every 3 hours, in hours 9 and 12, UTC"),
    ("FREQ=HOURLY;BYMINUTE=15,45", "every hour, at minutes 15 and 45, UTC"),
    ("DTSTART:19700101T000000\nFREQ=MINUTELY;INTERVAL=5;COUNT=3", "every 5 minutes, UTC, 3 times"),
    ("FREQ=DAILY;UNTIL=20300101", "every day, at 00:00, UTC, until 2030-01-01 23:59:59"),
    ("FREQ=DAILY;UNTIL=20300101T120000Z", "every day, at 00:00, UTC, until 2030-01-01 12:00:00 UTC"),
]


@pytest.mark.parametrize(("expression", "words"), CRON, ids=[expression for expression, _ in CRON])
def test_cron_in_words(expression: str, words: str) -> None:
    assert describe(Cron(expression)) == f"{words}, UTC"


@pytest.mark.parametrize(("when", "words"), OTHERS, ids=[words for _, words in OTHERS])
def test_others_in_words(when: When, words: str) -> None:
    assert describe(when) == words


@pytest.mark.parametrize(("text", "words"), RULES, ids=[text for text, _ in RULES])
def test_rules_in_words(text: str, words: str) -> None:
    assert describe(RRule(text)) == words


# Few values in many spellings, so that two that are chosen often mean the same.
MINUTES = (
    "*",
    "*/1",
    "0-59",
    "*/30",
    "0,30",
    "0-30/30",
    "30,0",
    "5",
    "5,35",
    "*/7",
    "0-56/7",
    "0-29",
    "H(5-5)",
    "0",
    "50-10",
)
HOURS = ("*", "0-23", "*/2", "0-22/2", "2", "1-3", "1,2,3", "22-2", "22,23,0,1,2", "*/12", "0,12", "1,3,8")
MONTH_DAYS = ("*", "?", "1-31", "*/2", "1-31/2", "13", "L", "L-0", "LW", "1W", "1,L", "1,2,3", "1-3", "28-31")
MONTHS = ("*", "1-12", "JAN", "1", "NOV-FEB", "11,12,1,2")
WEEKDAYS = ("*", "?", "0-6", "1-7", "MON", "1", "FRI-MON", "0,1,5,6", "5L", "5#3", "1,5#3", "SUN#5")
ZONES = ("UTC", BERLIN)
# Both changes of the clocks in Berlin, a leap day, the turn of a year.
PLACES = (
    datetime(2026, 3, 27, tzinfo=UTC),
    datetime(2026, 10, 23, tzinfo=UTC),
    datetime(2028, 2, 26, tzinfo=UTC),
    datetime(2029, 12, 30, tzinfo=UTC),
)
expressions = st.builds(
    " ".join,
    st.tuples(*(st.sampled_from(texts) for texts in (MINUTES, HOURS, MONTH_DAYS, MONTHS, WEEKDAYS))),
)


def fires(when: When, count: int = 40) -> list[Any]:
    return [when.preview(count, place) for place in PLACES]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(expressions, expressions, st.sampled_from(ZONES))
def test_same_words_same_fires(first: str, second: str, tz: str) -> None:
    """Fields of the second replace those of the first one by one: many of these mean the same, and must if
    they read the same."""
    fields = first.split(), second.split()
    base = Cron(first, tz)
    for number in range(5):
        other = Cron(" ".join((*fields[0][:number], fields[1][number], *fields[0][number + 1 :])), tz)
        if describe(other) == describe(base):
            assert fires(other) == fires(base)


def test_same_words_same_times_of_day() -> None:
    """Every pair of minutes and hours, with its behaviour where clocks change."""
    by_words: dict[str, list[Cron]] = defaultdict(list)
    for minute, hour, tz in product(MINUTES, HOURS, ZONES):
        made = Cron(f"{minute} {hour} * * *", tz)
        by_words[describe(made)].append(made)
    assert any(len(same) > 1 for same in by_words.values())
    for same in by_words.values():
        assert all(fires(one) == fires(same[0]) for one in same[1:]), same


@pytest.mark.slow
def test_same_words_same_days() -> None:
    by_words: dict[str, list[Cron]] = defaultdict(list)
    for day, month, weekday in product(MONTH_DAYS, MONTHS, WEEKDAYS):
        made = Cron(f"0 0 {day} {month} {weekday}")
        by_words[describe(made)].append(made)
    assert any(len(same) > 1 for same in by_words.values())
    for same in by_words.values():
        assert all(fires(one) == fires(same[0]) for one in same[1:]), same


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 30).map(lambda tenths: timedelta(milliseconds=100 * tenths)),
    st.integers(1, 30).map(lambda tenths: timedelta(milliseconds=100 * tenths)),
    st.integers(0, 40).map(lambda tenths: NOON + timedelta(milliseconds=100 * tenths)),
    st.integers(0, 40).map(lambda tenths: NOON + timedelta(milliseconds=100 * tenths)),
)
def test_same_words_same_intervals(
    first: timedelta, second: timedelta, anchor: datetime, other: datetime
) -> None:
    one, two = Every(first, anchor), Every(second, other)
    if describe(one) == describe(two):
        assert one.preview(50, NOON) == two.preview(50, NOON)


PARTS: dict[str, tuple[str, ...]] = {
    "FREQ": ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"),
    "INTERVAL": ("1", "2", "5"),
    "BYMONTH": ("3", "3,10", "1,2,3"),
    "BYMONTHDAY": ("1", "-1", "1,-1", "13"),
    "BYDAY": ("MO", "MO,TU,WE", "1MO", "-1SU", "SU"),
    "BYHOUR": ("2", "0,12", "2,3"),
    "BYMINUTE": ("0", "30", "0,30"),
    "BYSECOND": ("0", "5"),
    "BYSETPOS": ("1", "-1"),
    "WKST": ("MO", "SU"),
    "COUNT": ("1", "5"),
}


@st.composite
def rules(draw: st.DrawFn) -> tuple[RRule, RRule] | None:
    """Two rules that differ in one part."""
    chosen = {
        name: draw(st.sampled_from(values))
        for name, values in PARTS.items()
        if name == "FREQ" or draw(st.booleans())
    }
    start = draw(st.sampled_from(("", "DTSTART:20260101T000000\n", "DTSTART:20260301T023000\n")))
    other = dict(chosen)
    changed = draw(st.sampled_from(list(PARTS)))
    if changed in other and changed != "FREQ" and draw(st.booleans()):
        del other[changed]
    else:
        other[changed] = draw(st.sampled_from(PARTS[changed]))
    tz = draw(st.sampled_from(ZONES))
    try:
        one, two = (
            RRule(start + ";".join(f"{name}={value}" for name, value in parts.items()), tz)
            for parts in (chosen, other)
        )
    except InvalidInput:
        return None
    return one, two


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(rules())
def test_same_words_same_rules(pair: tuple[RRule, RRule] | None) -> None:
    if pair is not None and describe(pair[0]) == describe(pair[1]):
        assert fires(pair[0], 15) == fires(pair[1], 15)


def test_an_instant_is_never_rounded() -> None:
    moments = [NOON + timedelta(microseconds=number) for number in range(3)]
    assert len({describe(At(moment)) for moment in moments}) == 3
    assert At(moments[1]).next_us(to_micros(NOON)) == to_micros(NOON) + SECOND // SECOND

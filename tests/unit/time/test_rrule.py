"""Recurrence rules against python-dateutil where it is right, and against our rule for clock changes where it
is not."""

from __future__ import annotations

import time
import warnings
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.errors import InvalidWhen, NeverFires, UnknownZone
from duetime.model.when import Cron, RRule
from tests.unit.time.places import ZONES, changes_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from dateutil.rrule import rrulestr

EPOCH = "DTSTART:19700101T000000\n"
AFTER = datetime(2026, 3, 28, 12, tzinfo=UTC)


def lists(low: int, high: int, *, negative: bool = False, most: int = 3) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    either = st.one_of(numbers, numbers.map(lambda number: -number)) if negative else numbers
    return st.lists(either.map(str), min_size=1, max_size=most, unique=True).map(",".join)


weekdays = st.lists(
    st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), min_size=1, max_size=4, unique=True
).map(",".join)
numbered_weekdays = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, 4, 5, -1, -2, -5]), st.sampled_from(["MO", "WE", "SA", "SU"])).map(
        lambda pair: f"{pair[0]}{pair[1]}"
    ),
    min_size=1,
    max_size=3,
    unique=True,
).map(",".join)
times = {"BYHOUR": lists(0, 23), "BYMINUTE": lists(0, 59), "BYSECOND": lists(0, 59)}
months = {"BYMONTH": lists(1, 12)}
month_days = {"BYMONTHDAY": lists(1, 31, negative=True)}
positions = {"BYSETPOS": lists(1, 4, negative=True, most=2)}
PARTS: dict[str, dict[str, st.SearchStrategy[str]]] = {
    "YEARLY": times
    | months
    | month_days
    | {"BYDAY": st.one_of(weekdays, numbered_weekdays), "BYYEARDAY": lists(1, 366, negative=True)},
    "MONTHLY": times | months | month_days | {"BYDAY": st.one_of(weekdays, numbered_weekdays)},
    "WEEKLY": times | months | {"BYDAY": weekdays, "WKST": st.sampled_from(["MO", "SU", "WE"])},
    "DAILY": times | months | month_days | {"BYDAY": weekdays},
    "HOURLY": times | months | {"BYDAY": weekdays},
    # dateutil walks these minute by minute and second by second: what makes them rare is left to the list
    # below.
    "MINUTELY": {"BYHOUR": times["BYHOUR"], "BYMINUTE": times["BYMINUTE"], "BYSECOND": times["BYSECOND"]},
    "SECONDLY": {"BYMINUTE": times["BYMINUTE"], "BYSECOND": times["BYSECOND"]},
}
LONGEST = {
    "YEARLY": 3,
    "MONTHLY": 7,
    "WEEKLY": 5,
    "DAILY": 10,
    "HOURLY": 30,
    "MINUTELY": 100,
    "SECONDLY": 500,
}


@st.composite
def rules(draw: st.DrawFn) -> str:
    frequency = draw(st.sampled_from(list(PARTS)))
    chosen = draw(st.dictionaries(st.sampled_from(list(PARTS[frequency])), st.none(), max_size=4))
    parts = {name: draw(PARTS[frequency][name]) for name in chosen}
    # In the week of DTSTART dateutil counts positions from DTSTART, not from the start of the week.
    if parts.keys() - {"WKST"} and frequency in ("YEARLY", "MONTHLY", "DAILY") and draw(st.booleans()):
        parts |= {"BYSETPOS": draw(positions["BYSETPOS"])}
    parts |= {"INTERVAL": str(draw(st.integers(1, LONGEST[frequency])))}
    if draw(st.booleans()):
        parts |= {"COUNT": str(draw(st.integers(1, 30)))}
    return ";".join([f"FREQ={frequency}", *(f"{name}={value}" for name, value in parts.items())])


def expected_from(text: str, start: datetime, limit: int) -> list[datetime]:
    """dateutil's answer; it is asked for little, since it may walk for a very long time."""
    found = rrulestr(text, dtstart=start)
    return [
        moment.replace(tzinfo=UTC) for moment in islice(found.xafter(start - timedelta(seconds=1)), limit)
    ]


# The same examples each time: dateutil has faults of its own, and rules over which it thinks for minutes.
@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(rules(), st.datetimes(datetime(1996, 1, 1), datetime(2030, 1, 1)))
def test_agrees_with_dateutil(rule: str, start: datetime) -> None:
    start = start.replace(microsecond=0)
    text = f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}"
    try:
        ours = RRule(text)
    except NeverFires:
        return
    fires = ours.preview(12, after=start.replace(tzinfo=UTC) - timedelta(days=1))
    assert fires == expected_from(rule, start, len(fires))
    # Stateless: from any point the rest of the list is the same.
    for index in range(len(fires) - 1):
        assert ours.next(fires[index]) == fires[index + 1]
        assert ours.next(fires[index + 1] - timedelta(microseconds=1)) == fires[index + 1]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
        "FREQ=YEARLY;BYWEEKNO=1,-1;BYDAY=TH,SU",
        "FREQ=YEARLY;BYWEEKNO=53;BYDAY=FR",
        "FREQ=YEARLY;INTERVAL=2;BYWEEKNO=1;BYDAY=MO,SU;WKST=SU",
        "FREQ=YEARLY;BYDAY=20MO",
        "FREQ=YEARLY;BYDAY=-53SU,53SU",
        "FREQ=YEARLY;BYYEARDAY=366;BYDAY=MO",
        "FREQ=YEARLY;BYMONTH=11;BYMONTHDAY=2,3,4,5,6,7,8;BYDAY=TU;INTERVAL=4",
        "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        "FREQ=MONTHLY;BYDAY=TU,WE,TH;BYSETPOS=3",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "FREQ=MONTHLY;BYMONTHDAY=-3",
        "FREQ=MONTHLY;INTERVAL=18;BYMONTHDAY=10,11,12,13,14,15",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=MO",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU",
        "FREQ=DAILY;BYHOUR=9,10,11;BYMINUTE=0,20,40",
        "FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0,30;BYSETPOS=1,-1",
        "FREQ=HOURLY;INTERVAL=3;BYMINUTE=10,50;BYSETPOS=-1",
        "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16",
        "FREQ=MINUTELY;INTERVAL=90;BYDAY=MO",
        "FREQ=SECONDLY;INTERVAL=45;BYHOUR=3;BYMONTH=1",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=29;BYYEARDAY=60",
    ],
)
def test_rules_from_the_standard_and_beyond(rule: str) -> None:
    """The examples of RFC 5545, and rarer ones, fire by fire."""
    start = datetime(1997, 9, 2, 9, 0)
    fires = RRule(f"DTSTART:19970902T090000\nRRULE:{rule}").preview(
        25, after=start.replace(tzinfo=UTC) - timedelta(days=1)
    )
    assert fires == expected_from(rule, start, 25)


def test_weeks_that_begin_on_sunday() -> None:
    """1999-01-01 lies in week 52 and 2004-01-02 in week 53 (week 1 has four days of its year); dateutil takes
    the first for 53 too."""
    rule = RRule("DTSTART:19970902T090000\nRRULE:FREQ=YEARLY;BYWEEKNO=53;BYDAY=FR;WKST=SU")
    fires = [fire.date().isoformat() for fire in rule.preview(3, after=datetime(1998, 2, 1, tzinfo=UTC))]
    assert fires == ["2004-01-02", "2009-01-02", "2015-01-02"]


@pytest.mark.parametrize("name", ZONES[::4])
def test_daily_rules_change_clocks_as_fixed_cron_does(name: str) -> None:
    rule, cron = RRule("FREQ=DAILY;BYHOUR=0,1,2;BYMINUTE=30", name), Cron("30 0,1,2 * * *", name)
    for change in changes_of(name):
        for distance in (-90_000, -1800, 0, 1800, 3600):
            after = (change + distance) * 1_000_000
            assert rule.next_us(after) == cron.next_us(after)


@pytest.mark.parametrize("name", ZONES[::4])
@pytest.mark.parametrize(
    ("text", "cron_text"),
    [("FREQ=HOURLY;BYMINUTE=0,30", "0,30 * * * *"), ("FREQ=MINUTELY;INTERVAL=15", "*/15 * * * *")],
)
def test_shorter_rules_follow_real_time_as_wildcards_do(name: str, text: str, cron_text: str) -> None:
    """Dateutil would skip the repeated hour."""
    rule, cron = RRule(text, name), Cron(cron_text, name)
    for change in changes_of(name):
        after = (change - 5400) * 1_000_000
        while after < (change + 5400) * 1_000_000:
            found = rule.next_us(after)
            assert found == cron.next_us(after)
            after = found or 0


def test_range_starts_where_it_should() -> None:
    nine = datetime(2026, 11, 2, 9, tzinfo=ZoneInfo("America/New_York")).astimezone(UTC)
    rule = "RRULE:FREQ=WEEKLY;BYDAY=MO"
    for text, tz in [
        ("DTSTART:20261101T090000\n", "America/New_York"),
        ("DTSTART;TZID=America/New_York:20261101T090000\n", "UTC"),
        ("DTSTART;TZID=America/New_York;VALUE=DATE-TIME:20261101T090000\r\n", "America/New_York"),
        ("DTSTART:20261101T140000Z\n", "America/New_York"),
    ]:
        when = RRule(text + rule, tz)
        assert when.tz == "America/New_York"
        assert when.next(AFTER) == nine
    assert RRule("FREQ=DAILY").next(AFTER) == datetime(2026, 3, 29, tzinfo=UTC)
    assert RRule("rrule:freq=daily;byhour=9").next(AFTER) == datetime(2026, 3, 29, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("FREQ=DAILY;BYHOUR=9;UNTIL=20260402", "2026-04-02T07:00Z"),
        ("FREQ=DAILY;BYHOUR=9;UNTIL=20260402T090000", "2026-04-02T07:00Z"),
        ("FREQ=DAILY;BYHOUR=9;UNTIL=20260402T085959", "2026-04-01T07:00Z"),
        ("FREQ=DAILY;BYHOUR=9;UNTIL=20260402T070000Z", "2026-04-02T07:00Z"),
        ("FREQ=DAILY;BYHOUR=9;UNTIL=20260402T065959Z", "2026-04-01T07:00Z"),
        ("DTSTART:20260327T090000\nRRULE:FREQ=DAILY;COUNT=5", "2026-03-31T07:00Z"),
        (
            "DTSTART:20261025T010000\nRRULE:FREQ=MINUTELY;INTERVAL=15;UNTIL=20261025T023000",
            "2026-10-25T01:30Z",
        ),
    ],
)
def test_range_ends_where_it_should(text: str, last: str) -> None:
    """The last one: until 02:30 by the wall, and 02:30 comes twice that night."""
    rule = RRule(text, "Europe/Berlin")
    fires = rule.preview(50, after=AFTER)
    assert fires[-1] == datetime.fromisoformat(last)
    assert rule.next(fires[-1]) is None


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        # Nothing at 02:30: there is no such hour.
        ("DTSTART:20260308T003000\nFREQ=HOURLY;COUNT=5", "00:30 01:30 03:30 04:30 05:30"),
        # 01:30 comes twice.
        ("DTSTART:20261101T003000\nFREQ=HOURLY;COUNT=5", "00:30 01:30 01:30 02:30 03:30"),
        # Both times of the gap fire once, after it.
        ("DTSTART:20260308T020000\nFREQ=DAILY;BYHOUR=2;BYMINUTE=0,30;COUNT=4", "03:00 02:00 02:30 02:00"),
        ("DTSTART:20260307T023000\nFREQ=DAILY;COUNT=3", "02:30 03:00 02:30"),
        ("DTSTART:20261101T013000\nFREQ=DAILY;COUNT=2", "01:30 01:30"),
    ],
)
def test_count_is_that_of_fires_over_a_clock_change(text: str, fires: str) -> None:
    place = "America/New_York"
    found = RRule(text, place).preview(50, after=datetime(2026, 1, 1, tzinfo=UTC))
    assert " ".join(f"{fire.astimezone(ZoneInfo(place)):%H:%M}" for fire in found) == fires


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(["America/New_York", "Australia/Lord_Howe", "Europe/Berlin"]),
    st.sampled_from(["HOURLY", "MINUTELY;INTERVAL=20", "DAILY", "DAILY;BYMINUTE=0,15,30,45", "WEEKLY"]),
    st.datetimes(datetime(2026, 3, 1), datetime(2026, 11, 30)),
    st.integers(1, 200),
)
def test_rule_fires_as_often_as_its_count_says(
    place: str, frequency: str, start: datetime, count: int
) -> None:
    text = f"DTSTART:{start:%Y%m%dT%H%M00}\nRRULE:FREQ={frequency}"
    after = start.replace(tzinfo=UTC) - timedelta(days=2)
    fires = RRule(f"{text};COUNT={count}", place).preview(count + 5, after=after)
    assert fires == RRule(text, place).preview(count, after=after)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        # Long lines are folded; calendars write them so.
        ("RRULE:FREQ=DAILY;\r\n BYHOUR=9;BYMIN\r\n\tUTE=30", "FREQ=DAILY;BYHOUR=9;BYMINUTE=30"),
        # An indented text, as in a program, is not folded.
        ("  DTSTART:20260401T090000\n  FREQ=DAILY", "DTSTART:20260401T090000\nFREQ=DAILY"),
        (
            'DTSTART;TZID="America/New_York":20260401T090000\nFREQ=DAILY',
            "DTSTART;TZID=America/New_York:20260401T090000\nFREQ=DAILY",
        ),
        ("DTSTART;VALUE=DATE:20260401\nFREQ=DAILY;BYHOUR=9;BYMINUTE=1,2", "DTSTART:20260401\nFREQ=DAILY"),
        # There are no leap seconds here.
        ("FREQ=DAILY;BYSECOND=58,59,60", "FREQ=DAILY;BYSECOND=58,59"),
        ("DTSTART:20260401T235960\nFREQ=DAILY", "DTSTART:20260401T235959\nFREQ=DAILY"),
    ],
)
def test_forms_of_the_standard_are_read(text: str, same: str) -> None:
    fires = RRule(text).preview(5, after=AFTER)
    assert fires == RRule(same).preview(5, after=AFTER)
    assert len(fires) == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "0 lines"),
        ("FREQ=DAILY\nFREQ=DAILY", "2 lines"),
        ("DTSTART:20260101T000000\nDTSTART:20260101T000000\nFREQ=DAILY", "3 lines"),
        ("DTSTART:20260101T000000\nRRULE:FREQ=DAILY\nEXDATE:20260102T000000", "EXDATE and RDATE are not"),
        ("INTERVAL=2", "FREQ must be one of"),
        ("FREQ=FORTNIGHTLY", "FREQ must be one of"),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ is given twice"),
        ("FREQ=DAILY;BYEASTER=1", "part 'BYEASTER' is unknown"),
        ("FREQ=DAILY;;BYHOUR=1", "part '' is unknown"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL '0'"),
        ("FREQ=DAILY;INTERVAL=-1", "INTERVAL '-1'"),
        ("FREQ=DAILY;INTERVAL=99999999", "INTERVAL '99999999'"),
        ("FREQ=DAILY;COUNT=3", "COUNT counts from a DTSTART line: add one"),
        (f"{EPOCH}FREQ=DAILY;COUNT=0", "COUNT '0'"),
        (f"{EPOCH}FREQ=DAILY;COUNT=10001", "COUNT '10001' is not a number from 1 to 10000"),
        (f"{EPOCH}FREQ=DAILY;COUNT=2;UNTIL=20300101", "cannot be combined"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL 'TOMORROW' is not a date-time"),
        ("FREQ=DAILY;UNTIL=20261301", "not in the calendar"),
        ("FREQ=DAILY;UNTIL=99991231T000000Z", "out of range"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR '24'"),
        ("FREQ=DAILY;BYHOUR=-1", "BYHOUR '-1'"),
        ("FREQ=DAILY;BYSECOND=61", "BYSECOND '61'"),
        ("FREQ=DAILY;BYHOUR=٣", "BYHOUR '٣'"),
        ("FREQ=DAILY;BYHOUR=", "BYHOUR ''"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY '0'"),
        ("FREQ=MONTHLY;BYDAY=XX", "BYDAY 'XX' is not a weekday"),
        ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY '0'"),
        ("FREQ=MONTHLY;BYDAY=-MO", "BYDAY ''"),
        ("FREQ=MONTHLY;BYDAY=--1MO", "BYDAY '-1'"),
        ("FREQ=DAILY;BYDAY=1MO", "needs FREQ=MONTHLY or YEARLY"),
        ("FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO needs FREQ=YEARLY"),
        ("FREQ=MONTHLY;BYYEARDAY=1", "BYYEARDAY cannot be combined with"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY cannot be combined with"),
        ("FREQ=DAILY;BYSETPOS=1", "BYSETPOS needs another BY part"),
        ("FREQ=DAILY;WKST=XX", "WKST 'XX'"),
        ("DTSTART\nFREQ=DAILY", "has no value"),
        ("DTSTART;X=1:20260101T000000\nFREQ=DAILY", "parameter 'X=1'"),
        ("DTSTART:19690101T000000\nFREQ=DAILY", "out of range"),
        ("DTSTART:20260101X000000\nFREQ=DAILY", "is not a date-time"),
        ("X" * 3000, "the maximum is 2048"),
        ("FREQ=YEARLY;BYYEARDAY=" + ",".join(["1"] * 400), "the maximum is 366"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    with pytest.raises(InvalidWhen) as refused:
        RRule(text)
    assert refused.value.field == "rrule"
    assert words in str(refused.value)


def test_zone_refusals() -> None:
    with pytest.raises(UnknownZone):
        RRule("FREQ=DAILY", "Mars/Olympus")
    with pytest.raises(InvalidWhen, match="has TZID=Asia/Tokyo but tz is Europe/Berlin"):
        RRule("DTSTART;TZID=Asia/Tokyo:20260101T000000\nFREQ=DAILY", "Europe/Berlin")
    with pytest.raises(InvalidWhen, match="is not text"):
        RRule(5)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=4;BYMONTHDAY=31",
        "FREQ=SECONDLY;INTERVAL=2;BYSECOND=1",
        "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30;BYHOUR=3",
        "FREQ=YEARLY;BYWEEKNO=20;BYMONTH=1",
        "FREQ=MONTHLY;BYDAY=5MO;BYMONTH=2;BYMONTHDAY=28",
        "DTSTART:20260101T000000\nFREQ=DAILY;UNTIL=20250101",
        "FREQ=DAILY;BYHOUR=1;BYSETPOS=2",
    ],
)
def test_never_fires(text: str) -> None:
    """Dateutil walks to the year 9999."""
    began = time.process_time()
    with pytest.raises(NeverFires):
        RRule(text)
    assert time.process_time() - began < 10, "no machine is that slow: it walks"


def test_nothing_walks_from_the_start() -> None:
    """Six years of minutes took dateutil four seconds."""
    for frequency in ("SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"):
        rule = RRule(f"DTSTART:19700101T000000\nFREQ={frequency};INTERVAL=5")
        began = time.process_time()
        assert rule.next(datetime(2900, 1, 1, tzinfo=UTC)) is not None
        assert time.process_time() - began < 2, "no machine is that slow: it walks"


@settings(max_examples=500, deadline=timedelta(seconds=20))
@given(st.text(alphabet="FREQDAILYMONTHSBU=;:,-+0123456789Z\n٣", max_size=80), st.booleans())
def test_any_text_is_read_or_refused(text: str, led: bool) -> None:
    try:
        rule = RRule("FREQ=MONTHLY;" + text if led else text)
    except InvalidWhen:
        return
    found = rule.next(AFTER)
    assert found is None or found > AFTER


@pytest.mark.slow
def test_rule_that_is_slow_to_count_is_refused_as_fast_as_others_are_read() -> None:
    """Compared with a rule that has many fires, one in each period."""

    def spent(count: int) -> float:
        began = time.process_time()
        assert RRule(f"{EPOCH}FREQ=DAILY;COUNT={count}").next(datetime(1970, 1, 2, tzinfo=UTC)) is not None
        return time.process_time() - began

    plain = min(spent(count) for count in (9_998, 9_999, 10_000))
    for rule in (
        "FREQ=SECONDLY;INTERVAL=3571;BYMINUTE=0;BYSECOND=0;COUNT=1500",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;COUNT=10000",
        "FREQ=YEARLY;BYDAY=1MO;COUNT=7000",
    ):
        began = time.process_time()
        with pytest.raises(InvalidWhen, match="use a longer FREQ, a smaller COUNT"):
            RRule(EPOCH + rule)
        assert time.process_time() - began < 60 * plain, rule

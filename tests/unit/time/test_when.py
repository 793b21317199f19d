"""The four values of `when`: what they accept, equal, forget and write, and what they say in English."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.errors import InvalidInput, InvalidWhen, NeverFires, UnknownZone
from duetime.model import instant, zone
from duetime.model.when import At, Cron, Every, RRule, When, from_json, seeded, to_json

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SAMPLES: list[When] = [
    Cron("30 2 * * MON-FRI", "Europe/Berlin"),
    Cron("H H * * *", key="nightly"),
    Cron("@every 10s"),
    Every("5m"),
    Every("90m", anchor=NOON),
    At(NOON),
    RRule("FREQ=MONTHLY;BYDAY=-1FR", "America/New_York"),
    RRule("DTSTART:20260101T090000\nRRULE:FREQ=DAILY;COUNT=500"),
]


@pytest.mark.parametrize("when", SAMPLES, ids=str)
class TestEveryKind:
    def test_next_is_strictly_later_and_utc(self, when: When) -> None:
        found = when.next(datetime(2026, 5, 31, tzinfo=ZoneInfo("Asia/Tokyo")))
        assert found is not None
        assert found.tzinfo is UTC
        following = when.next(found)
        assert following is None or following > found
        assert when.next(found - timedelta(microseconds=1)) == found

    def test_preview_is_repeated_next(self, when: When) -> None:
        fires: list[datetime] = []
        after = NOON - timedelta(days=1)
        while len(fires) < 5 and (found := when.next(after)) is not None:
            fires.append(found)
            after = found
        assert when.preview(5, after=NOON - timedelta(days=1)) == fires

    def test_survives_json_pickle_and_copy(self, when: When) -> None:
        for again in (
            from_json(to_json(when)),
            pickle.loads(pickle.dumps(when)),
            copy.deepcopy(when),
            copy.copy(when),
        ):
            assert again == when
            assert hash(again) == hash(when)
            assert again.next(NOON) == when.next(NOON)

    def test_cannot_be_changed(self, when: When) -> None:
        for member in fields(when):
            with pytest.raises(FrozenInstanceError):
                setattr(when, member.name, None)

    @pytest.mark.parametrize("after", [datetime(2026, 1, 1), date(2026, 1, 1), "2026-01-01", 5, None])
    def test_refuses_an_after_that_is_no_instant(self, when: When, after: Any) -> None:
        for ask in (lambda: when.next(after), lambda: when.preview(1, after=after)):
            with pytest.raises(InvalidInput) as refused:
                ask()
            assert refused.value.field == "after"

    @pytest.mark.parametrize("n", [0, -1, 10_001, True, 1.5, "3", None])
    def test_refuses_a_senseless_preview(self, when: When, n: Any) -> None:
        with pytest.raises(InvalidInput) as refused:
            when.preview(n, after=NOON)
        assert refused.value.field == "n"

    @pytest.mark.parametrize("year", [1, 2, 1582, 1899, 1969, 2037, 2038, 2100, 9998, 9999])
    def test_any_year_is_answered(self, when: When, year: int) -> None:
        """No OverflowError at either end of the calendar, in any zone."""
        for moment in (datetime(year, 1, 1), datetime(year, 12, 31, 23, 59, 59, 999_999)):
            for place in (UTC, timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))):
                found = when.next(moment.replace(tzinfo=place))
                assert found is None or found.year < 9999


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Niue"])
@pytest.mark.parametrize(
    "text", ["* * * * *", "0 0 * * *", "0 0 29 2 *", "59 59 23 31 12 ?", "*/7 */5 L-3W 2 *"]
)
def test_cron_at_the_ends_of_the_calendar(text: str, name: str) -> None:
    cron = Cron(text, name)
    assert cron.next(datetime.min.replace(tzinfo=UTC)) is not None
    assert cron.next(datetime.max.replace(tzinfo=UTC)) is None
    assert cron.next_us(-(10**18)) == cron.next_us(-(10**17)) is not None
    assert cron.next_us(10**18) is None
    fires = cron.preview(10_000, after=datetime(9998, 12, 31, 23, 50, tzinfo=UTC))
    assert all(fire.year < 9999 for fire in fires)


def test_the_last_minute_fires_and_then_nothing() -> None:
    last = datetime(9998, 12, 31, 23, 59, tzinfo=UTC)
    assert Cron("* * * * *").preview(5, after=last - timedelta(seconds=90)) == [
        last - timedelta(minutes=1),
        last,
    ]
    assert Every("1m").preview(5, after=last - timedelta(seconds=30)) == [last]


def test_a_fire_no_gap_ever_lets_through_is_given_up() -> None:
    """Between 02:00 and 03:00 on the last Sunday of March Berlin has no time at all; the search ends after a
    century."""
    assert Cron("*/15 2 * 3 SUNL", "Europe/Berlin").next(NOON) is None


class TestEvery:
    def test_is_aligned_to_its_anchor(self) -> None:
        assert Every("5m").next(NOON + timedelta(seconds=1)) == NOON + timedelta(minutes=5)
        assert Every("5m").next(NOON) == NOON + timedelta(minutes=5)
        anchored = Every("1h", anchor=NOON + timedelta(minutes=7))
        assert anchored.next(NOON) == NOON + timedelta(minutes=7)
        assert anchored.next(NOON - timedelta(days=3)) == NOON - timedelta(days=3) + timedelta(minutes=7)

    def test_a_million_fires_without_drift(self) -> None:
        every = Every("700ms", anchor=NOON)
        start = every.next(NOON)
        assert start is not None
        moment = first = instant.to_micros(start)
        for _ in range(1_000_000):
            moment = every.next_us(moment) or 0
        assert moment - first == 1_000_000 * 700_000

    @settings(max_examples=300)
    @given(st.integers(100_000, 10**13), st.integers(0, 4 * 10**15), st.integers(-(10**15), 5 * 10**15))
    def test_every_fire_is_a_whole_number_of_intervals_away(
        self, micros: int, anchor: int, after: int
    ) -> None:
        found = Every(timedelta(microseconds=micros), instant.to_datetime(anchor)).next_us(after)
        assert found is not None
        assert (found - anchor) % micros == 0
        assert after < found <= after + micros

    @pytest.mark.parametrize(
        "interval",
        ["99ms", "0s", "", "5", "five minutes", "-5m", "11y", timedelta(0), timedelta(days=-1), 5, None],
    )
    def test_refusals(self, interval: Any) -> None:
        with pytest.raises(InvalidWhen) as refused:
            Every(interval)
        assert refused.value.field == "every"

    @pytest.mark.parametrize(
        "anchor",
        [datetime(2026, 1, 1), datetime(1969, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC), "2026"],
    )
    def test_anchor_refusals(self, anchor: Any) -> None:
        with pytest.raises(InvalidWhen) as refused:
            Every("5m", anchor)
        assert refused.value.field == "anchor"

    def test_the_same_interval_is_the_same_value(self) -> None:
        assert Every("60s") == Every("1m") == Every(timedelta(minutes=1))
        assert Every("1m", NOON) == Every("1m", NOON.astimezone(ZoneInfo("Asia/Tokyo"))) != Every("1m")


class TestAt:
    def test_fires_once(self) -> None:
        assert At(NOON).preview(5, after=NOON - timedelta(days=1)) == [NOON]
        assert At(NOON).next(NOON) is None

    def test_the_same_instant_is_the_same_value(self) -> None:
        """However it is written."""
        texts = [
            "2026-06-01T12:00:00Z",
            "2026-06-01T12:00:00+00:00",
            "2026-06-01T12:00:00.000000Z",
            "2026-06-01T14:00:00+02:00",
            "2026-06-01T12:00Z",
        ]
        values = {from_json({"at": text}) for text in texts}
        assert values == {At(NOON)}
        assert {str(to_json(value)) for value in values} == {"{'at': '2026-06-01T12:00:00Z'}"}

    @pytest.mark.parametrize(
        "moment",
        [
            datetime(2026, 1, 1),
            datetime(1969, 1, 1, tzinfo=UTC),
            datetime(9999, 1, 1, tzinfo=UTC),
            "2026",
            5,
            None,
        ],
    )
    def test_refusals(self, moment: Any) -> None:
        with pytest.raises(InvalidWhen) as refused:
            At(moment)
        assert refused.value.field == "at"


@pytest.mark.parametrize(
    ("value", "when"),
    [
        ({"cron": "0 9 * * *", "tz": "Europe/Berlin"}, Cron("0 9 * * *", "Europe/Berlin")),
        ({"cron": "0  9 * * *"}, Cron("0 9 * * *")),
        ({"cron": "H 9 * * *", "key": "a"}, Cron("H 9 * * *", key="a")),
        ({"every": "5m"}, Every("5m")),
        ({"every": "5m", "anchor": "2026-06-01T12:00:00Z"}, Every("5m", NOON)),
        ({"at": "2026-06-01T12:00:00Z"}, At(NOON)),
        ({"rrule": "FREQ=DAILY", "tz": "Asia/Tokyo"}, RRule("FREQ=DAILY", "Asia/Tokyo")),
    ],
)
def test_reads_the_api_form(value: dict[str, str], when: When) -> None:
    assert from_json(value) == when


@pytest.mark.parametrize(
    ("value", "field", "kind"),
    [
        (None, "when", InvalidWhen),
        ("0 9 * * *", "when", InvalidWhen),
        ([], "when", InvalidWhen),
        ({}, "when", InvalidWhen),
        ({"tz": "UTC"}, "when", InvalidWhen),
        ({"cron": "* * * * *", "every": "5m"}, "when", InvalidWhen),
        ({"cron": "* * * * *", "zone": "UTC"}, "when.zone", InvalidWhen),
        ({"every": "5m", "tz": "UTC"}, "when.tz", InvalidWhen),
        ({"cron": 5}, "when.cron", InvalidWhen),
        ({"cron": None}, "when.cron", InvalidWhen),
        ({"cron": "* * * * *", "tz": 5}, "when.tz", InvalidWhen),
        ({"cron": "* * * * *", "tz": None}, "when.tz", InvalidWhen),
        ({"cron": "61 * * * *"}, "when.cron", InvalidWhen),
        ({"cron": "0 0 30 2 *"}, "when.cron", NeverFires),
        ({"cron": "* * * * *", "tz": "Nowhere"}, "when.tz", UnknownZone),
        ({"every": 5}, "when.every", InvalidWhen),
        ({"every": "1ms"}, "when.every", InvalidWhen),
        ({"every": "5m", "anchor": "noon"}, "when.anchor", InvalidWhen),
        ({"every": "5m", "anchor": "2026-06-01T12:00:00"}, "when.anchor", InvalidWhen),
        ({"at": "2026-06-01T12:00:00"}, "when.at", InvalidWhen),
        ({"at": "tomorrow"}, "when.at", InvalidWhen),
        ({"at": 1780315200}, "when.at", InvalidWhen),
        ({"at": "9999-06-01T12:00:00Z"}, "when.at", InvalidWhen),
        ({"rrule": "FREQ=NEVER"}, "when.rrule", InvalidWhen),
        ({"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, "when.rrule", NeverFires),
        ({"rrule": "FREQ=DAILY", "tz": "Nowhere"}, "when.tz", UnknownZone),
    ],
)
def test_refuses_what_is_not_the_api_form(value: Any, field: str, kind: type[InvalidWhen]) -> None:
    with pytest.raises(kind) as refused:
        from_json(value)
    assert refused.value.field == field
    with pytest.raises(kind) as refused:
        from_json(value, "schedules[3].when")
    assert refused.value.field == field.replace("when", "schedules[3].when", 1)


def test_the_json_form_is_the_documented_one() -> None:
    assert to_json(Cron("0 9 * * *", "Europe/Berlin")) == {"cron": "0 9 * * *", "tz": "Europe/Berlin"}
    assert to_json(Every(timedelta(minutes=90))) == {"every": "1h30m"}
    assert to_json(Every("5m", NOON)) == {"every": "5m", "anchor": "2026-06-01T12:00:00Z"}
    assert to_json(At(NOON)) == {"at": "2026-06-01T12:00:00Z"}
    assert to_json(RRule("FREQ=DAILY")) == {"rrule": "FREQ=DAILY", "tz": "UTC"}


def test_seeding_fills_in_a_missing_key_only() -> None:
    assert seeded(Cron("H * * * *"), "nightly") == Cron("H * * * *", key="nightly")
    assert seeded(Cron("H * * * *", key="own"), "nightly") == Cron("H * * * *", key="own")
    assert seeded(Cron("H(2-9)/3 * * * *", "Asia/Tokyo"), "nightly") == Cron(
        "H(2-9)/3 * * * *", "Asia/Tokyo", "nightly"
    )
    for when in (
        Cron("0 * * MAR THU"),
        Cron("@hourly"),
        Cron("@every 10s"),
        Every("5m"),
        At(NOON),
        RRule("FREQ=DAILY"),
    ):
        assert seeded(when, "nightly") is when


def test_a_key_that_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidWhen, match="key: 5 is not text"):
        Cron("H * * * *", key=5)  # type: ignore[arg-type]  # the point of the test


def test_zones_are_read_again_after_an_upgrade_of_tzdata(tmp_path: Any) -> None:
    """A value made after the upgrade follows the new rules; one made before keeps its own."""
    import importlib.resources
    import zoneinfo

    folder = tmp_path / "Europe"
    folder.mkdir()
    (folder / "Berlin").write_bytes(
        importlib.resources.files("tzdata.zoneinfo.Asia").joinpath("Tokyo").read_bytes()
    )
    before = Cron("0 9 * * *", "Europe/Berlin")
    try:
        zoneinfo.reset_tzpath([str(tmp_path)])
        zone.forget()
        assert Cron("0 9 * * *", "Europe/Berlin").next(NOON) == datetime(2026, 6, 2, 0, tzinfo=UTC)
        assert before.next(NOON) == datetime(2026, 6, 2, 7, tzinfo=UTC)
    finally:
        zoneinfo.reset_tzpath()
        zone.forget()
    assert Cron("0 9 * * *", "Europe/Berlin").next(NOON) == datetime(2026, 6, 2, 7, tzinfo=UTC)

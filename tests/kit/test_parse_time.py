"""Parsing of times as tests write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime.errors import InvalidInput
from duetime.model.instant import to_datetime, to_micros
from duetime.testing.kit.parse_time import parse_time

NOW = to_micros(datetime(2026, 11, 18, 12, 0, tzinfo=UTC))  # a Wednesday


@pytest.mark.parametrize(
    ("text", "tz", "expected"),
    [
        ("2026-11-20T09:00Z", "UTC", "2026-11-20T09:00+00:00"),
        ("2026-11-20T09:00+02:00", "Europe/Berlin", "2026-11-20T07:00+00:00"),
        ("2026-11-20 09:00", "Europe/Berlin", "2026-11-20T08:00+00:00"),
        ("2026-11-20", "UTC", "2026-11-20T00:00+00:00"),
        ("Monday 09:00", "UTC", "2026-11-23T09:00+00:00"),
        ("monday 9:00", "America/New_York", "2026-11-23T14:00+00:00"),
        ("Mon 09:00:30", "UTC", "2026-11-23T09:00:30+00:00"),
        ("Wednesday 12:00", "UTC", "2026-11-25T12:00+00:00"),
        ("Wednesday 12:01", "UTC", "2026-11-18T12:01+00:00"),
        ("Friday", "UTC", "2026-11-20T00:00+00:00"),
        ("09:00", "UTC", "2026-11-19T09:00+00:00"),
        ("13:00", "UTC", "2026-11-18T13:00+00:00"),
    ],
)
def test_times_are_parsed(text: str, tz: str, expected: str) -> None:
    assert to_datetime(parse_time(text, tz, NOW)) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    "text", ["soon", "25:00", "9:61", "Monday 24:00", "mo 09:00", "2026-13-01", "", 5, datetime(2026, 1, 1)]
)
def test_invalid_times_are_refused(text: object) -> None:
    with pytest.raises(InvalidInput, match="until"):
        parse_time(text, "UTC", NOW)  # type: ignore[arg-type]


def test_unknown_zone_is_refused() -> None:
    with pytest.raises(InvalidInput):
        parse_time("09:00", "Mars/Olympus", NOW)
    with pytest.raises(InvalidInput):
        parse_time("2026-11-20 09:00", "Mars/Olympus", NOW)

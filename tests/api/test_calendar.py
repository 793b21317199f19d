"""The calendar of coming fires."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime.app import calendar as counting
from tests.api.conftest import TASK, Api, refused

START = datetime(2031, 3, 29, tzinfo=UTC)  # the clocks of Europe go forward on the 30th


async def schedule(api: Api, name: str, when: dict[str, str], **fields: Any) -> None:
    done = await api.post("/schedules", {"name": name, "when": when, "target": TASK, **fields})
    assert done.status_code == 201, done.text


def stretch(days: float) -> str:
    return f"from={START:%Y-%m-%dT%H:%M:%SZ}&to={START + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"


async def test_calendar_buckets_follow_the_days_of_a_zone(api: Api) -> None:
    """A day of 23 hours is one day."""
    await schedule(api, "daily", {"cron": "30 2 * * *", "tz": "Europe/Berlin"})
    await schedule(api, "hourly", {"cron": "0 * * * *", "tz": "Europe/Berlin"})
    await schedule(api, "often", {"every": "10m"})
    await schedule(api, "paused", {"every": "1s"}, paused=True)
    found = (await api.get(f"/calendar?{stretch(3)}&bucket=1d&tz=Europe/Berlin")).json()
    assert (found["from"], found["bucket"], found["complete"], found["note"]) == (
        "2031-03-29T00:00:00Z",
        "1d",
        True,
        None,
    )
    assert [bucket["at"] for bucket in found["buckets"]] == [
        "2031-03-28T23:00:00Z", "2031-03-29T23:00:00Z", "2031-03-30T22:00:00Z", "2031-03-31T22:00:00Z",
    ]  # fmt: skip
    assert [bucket["count"] for bucket in found["buckets"]] == [
        1 + 23 + 23 * 6,
        1 + 23 + 23 * 6,
        1 + 24 + 24 * 6,
        2 + 2 * 6,
    ]


async def test_listed_fires_match_the_counts(api: Api) -> None:
    await schedule(api, "a", {"every": "20m"})
    await schedule(api, "b", {"cron": "*/30 * * * *"})
    await schedule(api, "c", {"at": "2031-03-29T01:00:00Z"})
    counts = {
        one["at"]: one["count"] for one in (await api.get(f"/calendar?{stretch(0.25)}")).json()["buckets"]
    }
    fires: list[dict[str, Any]] = []
    path = f"/calendar/fires?{stretch(0.25)}&limit=7"
    cursor = ""
    while cursor is not None:
        page = (await api.get(path + (f"&cursor={cursor}" if cursor else ""))).json()
        assert len(page["items"]) <= 7
        fires += page["items"]
        cursor = page["next_cursor"]
    assert Counter(f"{fire['at'][:13]}:00:00Z" for fire in fires) == Counter(counts)
    assert [fire["at"] for fire in fires] == sorted(fire["at"] for fire in fires)
    assert len({(fire["at"], fire["schedule_id"]) for fire in fires}) == len(fires) == 18 + 12 + 1
    assert {(fire["name"], fire["target"]) for fire in fires} == {(name, "invoice.send") for name in "abc"}


async def test_calendar_covers_the_next_day_by_default(api: Api) -> None:
    await schedule(api, "a", {"every": "1h"})
    found = (await api.get("/calendar")).json()
    assert len(found["buckets"]) in (24, 25)
    assert sum(bucket["count"] for bucket in found["buckets"]) == 24
    assert len((await api.get("/calendar/fires")).json()["items"]) == 24


async def test_calendar_that_is_not_complete_says_so(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await schedule(api, "a", {"every": "1s"}, end_at="2031-03-30T00:00:00Z")
    monkeypatch.setattr(counting, "COUNTING_TIMEOUT", 0)
    found = (await api.get(f"/calendar?{stretch(1)}")).json()
    assert found["complete"] is False
    assert "took too long" in found["note"]


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ("from=2031-01-02T00:00:00Z&to=2031-01-01T00:00:00Z", "to", "input_invalid"),
        ("from=2031-01-01T00:00:00Z&to=2031-03-01T00:00:00Z", "to", "input_invalid"),
        ("from=2031-01-01T00:00:00Z&to=2031-02-01T00:00:00Z&bucket=1m", "bucket", "input_invalid"),
        ("bucket=7m", "bucket", "input_invalid"),
        ("tz=Europe/Atlantis", "tz", "zone_unknown"),
        ("from=yesterday", "from", "input_invalid"),
    ],
)
async def test_invalid_calendar_query_is_refused(api: Api, query: str, field: str, code: str) -> None:
    refused(await api.get(f"/calendar?{query}"), 422, code, field)


async def test_calendar_cursor_is_valid_for_its_range_only(api: Api) -> None:
    await schedule(api, "a", {"every": "1m"})
    cursor = (await api.get(f"/calendar/fires?{stretch(1)}&limit=5")).json()["next_cursor"]
    refused(
        await api.get(f"/calendar/fires?{stretch(2)}&limit=5&cursor={cursor}"),
        400,
        "cursor_invalid",
        "cursor",
    )

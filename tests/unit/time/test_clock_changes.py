"""Cron against the slow reference around every change of the clocks, from starting points in gaps and folds
too."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, available_timezones

import pytest

from duetime.model.when import Cron
from tests.unit.time.places import FIXED, REAL, WITH_SECONDS, ZONES, changes_of
from tests.unit.time.reference import Expression, offset_at, walk

SECOND = 1_000_000
AROUND = 4_500
"""Seconds walked before a change, and after it once the second pass of a fold is over."""


def fires_between(cron: Cron, start: int, end: int) -> list[int]:
    found, fires = cron.next_us(start * SECOND - 1), []
    while found is not None and found < end * SECOND:
        fires.append(found // SECOND)
        found = cron.next_us(found)
    return fires


STARTS = (-4500, -3600, -1800, -61, -1, 0, 1, 59, 900, 1800, 2700, 3599, 3600, 3661, 4200)
"""Seconds from a change: stateless starts before, at and after it, in both passes of a fold."""


def check(cron: Cron, expected: list[int], end: int, change: int, starts: tuple[int, ...]) -> None:
    for distance in starts:
        index = bisect_right(expected, change + distance)
        got = cron.next_us((change + distance) * SECOND)
        assert got is not None
        if index < len(expected):
            assert got == expected[index] * SECOND, f"{cron} {distance} s from {change}"
        else:
            assert got >= end * SECOND, f"{cron} {distance} s from {change}"


def check_zone(name: str, expressions: tuple[str, ...], changes: list[int], step: int = 60) -> None:
    """At each change an expression is asked from a fifth of the starts, and across every sixth in a chain: in
    turn all come up."""
    zone, crons = ZoneInfo(name), [(Cron(text, name), Expression(text)) for text in expressions]
    for number, change in enumerate(changes):
        fold = max(0, offset_at(zone, change - 1) - offset_at(zone, change))
        start, end = change - AROUND, change + fold + AROUND
        seen = walk(zone, start, end, [change], step)
        for index, (cron, expression) in enumerate(crons):
            expected = seen.fires(expression)
            check(cron, expected, end, change, STARTS[(index + number) % 5 :: 5])
            if (index + number) % 6 == 0:
                assert fires_between(cron, start, end) == expected, f"{cron} across {change}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ZONES)
def test_every_change_since_1970(name: str) -> None:
    """Fixed times fire once, in the gap right after it and in the fold the first time; the others follow real
    time."""
    check_zone(name, FIXED + REAL, changes_of(name))


def test_the_zones_have_changes_of_every_kind() -> None:
    """Without this the test above could pass by having nothing to look at."""
    sizes = {
        offset_at(ZoneInfo(name), change) - offset_at(ZoneInfo(name), change - 1)
        for name in ZONES
        for change in changes_of(name)
    }
    assert sum(len(changes_of(name)) for name in ZONES) > 3_000
    assert {3600, -3600, 1800, -1800, 7200, -7200, 86_400, -10_800, 2_670} <= sizes


def distinct_zones() -> list[str]:
    """Of zones with the same file, the first."""
    found: dict[bytes, str] = {}
    for name in sorted(available_timezones() - {"localtime", "posixrules", "Factory"}):
        found.setdefault(file_of(name), name)
    return list(found.values())


def file_of(name: str) -> bytes:
    for folder in TZPATH:
        if (path := Path(folder, name)).is_file():
            return path.read_bytes()
    return files("tzdata").joinpath("zoneinfo", name).read_bytes()


@pytest.mark.slow
def test_every_change_of_every_zone() -> None:
    """E4, E5 for the whole tz database. Zones that change at the same instant from and to the same offset have
    the same local times around it: one of them is asked. No other change is near enough to matter."""
    assert len(distinct_zones()) > 250
    seen: set[tuple[int, int, int]] = set()
    for name in distinct_zones():
        zone, new = ZoneInfo(name), list[int]()
        for change in changes_of(name):
            kind = change, offset_at(zone, change - 1), offset_at(zone, change)
            if kind not in seen:
                seen.add(kind)
                new.append(change)
        check_zone(name, FIXED[:4] + REAL[:2], new)
    assert len(seen) > 5_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*ZONES[::6], "Africa/Monrovia", "Pacific/Apia", "Australia/Lord_Howe", "Antarctica/Troll"]
)
def test_seconds_across_the_latest_changes(name: str) -> None:
    """E4, E5 second by second: the distinction between fixed and real is made on minute and hour, whatever
    the seconds are."""
    for change in changes_of(name)[-2:]:
        seen = walk(ZoneInfo(name), change - 600, change + 7800, [change], step=1)
        for text in WITH_SECONDS:
            cron = Cron(text, name)
            inside = [fire for fire in seen.fires(Expression(text)) if fire < change + 7300]
            assert fires_between(cron, change - 600, change + 7300) == inside, f"{cron} across {change}"


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [("Europe/Amsterdam", 1900, 1945), ("Africa/Monrovia", 1919, 1975), ("Asia/Kolkata", 1900, 1950)],
)
def test_offsets_with_seconds(name: str, first: int, last: int) -> None:
    """Local minutes that begin at :28 or :30 past the UTC minute are still minutes."""
    check_zone(name, FIXED + REAL, changes_of(name, first, last))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Europe/Berlin", "Pacific/Apia", "Asia/Gaza", "America/Scoresbysund", "Africa/Casablanca"]
)
@pytest.mark.parametrize("text", ["30 2 * * *", "0 0 * * *", "45 23 * * *"])
def test_daily_schedule_fires_once_per_local_day(name: str, text: str) -> None:
    """Every date on the calendar has its fire; a date that a zone skipped whole has it right after the
    gap."""
    zone, cron = ZoneInfo(name), Cron(text, name)
    minute, hour = map(int, text.split()[:2])
    first = datetime(2005, 1, 1, hour, minute)
    found = int(first.replace(tzinfo=zone).timestamp()) * SECOND
    landed = first
    for number in range(1, 8_000):
        wanted = first + timedelta(days=number)
        if landed == wanted:
            # The date before was skipped whole, and its fire right after the gap is this date's midnight fire
            # too
            continue
        found = cron.next_us(found) or 0
        landed = datetime.fromtimestamp(found // SECOND, zone).replace(tzinfo=None)
        exists = wanted.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wanted
        assert landed == wanted if exists else wanted < landed <= wanted + timedelta(days=1), (
            f"{wanted} gave {landed}"
        )


@pytest.mark.parametrize(
    ("text", "name", "after", "fires"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]),
        ("0,15,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-29T01:00Z", "2026-03-30T00:00Z"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10Z", ["2026-10-26T01:30Z"]),
        ("0 */2 * * *", "Europe/Berlin", "2026-03-28T22:30Z", ["2026-03-28T23:00Z", "2026-03-29T02:00Z"]),
        (
            "0 */2 * * *",
            "Europe/Berlin",
            "2026-10-24T22:30Z",
            ["2026-10-25T00:00Z", "2026-10-25T01:00Z", "2026-10-25T03:00Z"],
        ),
        ("*/15 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-30T00:00Z"]),
        (
            "*/30 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T13:00Z",
            ["2026-04-04T14:00Z", "2026-04-04T14:30Z", "2026-04-04T15:00Z"],
        ),
        ("0 12 30 12 *", "Pacific/Apia", "2011-12-29T00:00Z", ["2011-12-30T10:00Z", "2012-12-29T22:00Z"]),
        ("30 2 29 3 *", "Europe/Berlin", "2026-03-01T00:00Z", ["2026-03-29T01:00Z", "2027-03-29T00:30Z"]),
    ],
)
def test_worked_examples(text: str, name: str, after: str, fires: list[str]) -> None:
    """E4, E5, told as people tell them."""
    previewed = Cron(text, name).preview(len(fires), after=datetime.fromisoformat(after))
    assert previewed == [datetime.fromisoformat(fire) for fire in fires]

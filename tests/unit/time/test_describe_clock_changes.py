"""Notes about changes of the clocks, held against the zone data as Python itself reads it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from duetime.model.forecast import PreviewedFire, previewed
from duetime.model.instant import SECOND, Micros, to_micros
from duetime.model.when import Cron, Every, RRule, When
from tests.unit.time.places import FIXED, REAL, ZONES, changes_of

BERLIN = "Europe/Berlin"
SPRING, AUTUMN = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)


def fires(when: When, after: datetime, count: int) -> tuple[PreviewedFire, ...]:
    found: list[Micros] = []
    moment = when.next_us(to_micros(after))
    while moment is not None and len(found) < count:
        found.append(moment)
        moment = when.next_us(moment)
    return previewed(when, found, to_micros(after)).fires


@pytest.mark.parametrize(
    ("when", "after", "notes"),
    [
        (
            Cron("30 2 * * *", BERLIN),
            SPRING,
            ["the clock jumps from 02:00 to 03:00: 02:30 does not exist and fires at 03:00 instead", None],
        ),
        (
            Cron("0,15 2 * * *", BERLIN),
            SPRING,
            [
                "the clock jumps from 02:00 to 03:00: 02:00 and 02:15 do not exist and fire once at 03:00 instead",
                None,
            ],
        ),
        (
            Cron("0 2,3 * * *", BERLIN),
            SPRING,
            ["the clock jumps from 02:00 to 03:00: 02:00 does not exist and falls together with 03:00", None],
        ),
        (
            Cron("*/20 2 * * *", BERLIN),
            SPRING,
            [
                "the clock jumps from 02:00 to 03:00: 02:00, 02:20 and 02:40 do not exist and are left out",
                None,
            ],
        ),
        (
            Cron("*/5 2 * * *", BERLIN),
            SPRING,
            [
                "the clock jumps from 02:00 to 03:00: 02:00, 02:05, 02:10, 02:15 and more do not exist and are left out",
                None,
            ],
        ),
        (
            Cron("30 2 * * *", BERLIN),
            AUTUMN,
            [
                "the clock goes back from 03:00 to 02:00: 02:30 happens twice, and fires the first time only",
                None,
            ],
        ),
        (
            Cron("30 * * * *", BERLIN),
            AUTUMN.replace(hour=23, minute=45),
            [
                "the clock goes back from 03:00 to 02:00: 02:30 happens twice, and fires both times (this is the first)",
                "the clock goes back from 03:00 to 02:00: 02:30 happens twice, and fires both times (this is the second)",
                None,
            ],
        ),
        (
            RRule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", BERLIN),
            SPRING,
            ["the clock jumps from 02:00 to 03:00: 02:30 does not exist and fires at 03:00 instead", None],
        ),
        (
            RRule("DTSTART:20260101T013000Z\nFREQ=DAILY", BERLIN),
            SPRING,
            ["the clock jumps from 02:00 to 03:00: 02:30 does not exist and fires at 03:00 instead", None],
        ),
        (
            Cron("0 9 * * *", "Pacific/Apia"),
            datetime(2011, 12, 29, 20, tzinfo=UTC),
            [
                "the clock jumps from 2011-12-30 00:00 to 2011-12-31 00:00: "
                "2011-12-30 09:00 does not exist and fires at 2011-12-31 00:00 instead",
                None,
            ],
        ),
        (Cron("30 2 * * *"), SPRING, [None, None]),
        (Every("1h"), SPRING, [None, None]),
        (Cron("@every 1h", BERLIN), SPRING, [None, None]),
    ],
    ids=str,
)
def test_clock_change_is_described(when: When, after: datetime, notes: list[str | None]) -> None:
    assert [fire.note for fire in fires(when, after, len(notes))] == notes


def test_local_times_are_those_of_the_zone() -> None:
    summer, winter = fires(Cron("0 12 * * *", BERLIN), datetime(2026, 10, 24, tzinfo=UTC), 2)
    assert summer.local.isoformat() == "2026-10-24T12:00:00+02:00"
    assert winter.local.isoformat() == "2026-10-25T12:00:00+01:00"
    assert winter.at == winter.local


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(st.sampled_from(ZONES), st.sampled_from(FIXED + REAL), st.data())
def test_every_time_that_happens_twice_is_noted_and_no_other(
    name: str, expression: str, data: st.DataObject
) -> None:
    changes = changes_of(name, 1990, 2037)
    assume(changes)
    change = datetime.fromtimestamp(data.draw(st.sampled_from(changes)), UTC)
    place = ZoneInfo(name)
    for fire in fires(Cron(expression, name), change - timedelta(days=1, hours=7), 60):
        wall = fire.local.replace(tzinfo=None)
        first, second = (wall.replace(tzinfo=place, fold=fold).utcoffset() for fold in (0, 1))
        assert first is not None
        assert second is not None
        twice = first > second
        assert fire.local.utcoffset() == fire.at.astimezone(place).utcoffset()
        assert ("twice" in (fire.note or "")) == twice, (fire, expression, name)


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(ZONES), st.sampled_from(FIXED), st.data())
@pytest.mark.slow
def test_every_fixed_time_that_does_not_exist_is_noted(
    name: str, expression: str, data: st.DataObject
) -> None:
    """A fire at another local time than those of the expression stands for one that does not exist, and says
    so."""
    changes = changes_of(name, 1990, 2037)
    assume(changes)
    change = datetime.fromtimestamp(data.draw(st.sampled_from(changes)), UTC)
    wall = Cron(expression)
    for fire in fires(Cron(expression, name), change - timedelta(days=1, hours=7), 60):
        moment = to_micros(fire.local.replace(tzinfo=UTC))
        if wall.next_us(moment - SECOND) != moment:
            assert "not exist" in (fire.note or ""), (fire, expression, name)

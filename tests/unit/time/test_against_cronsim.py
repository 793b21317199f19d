"""Cron against cronsim, a library with the same rules for clock changes, in the syntax both read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from duetime.errors import NeverFires
from duetime.model.when import Cron
from tests.unit.time.places import ZONES, changes_of
from tests.unit.time.reference import Expression, offset_at

pytestmark = pytest.mark.slow


def entries(low: int, high: int, *extra: str) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    # Two different ends: cronsim reads 5-5/2 as 5/2.
    span = (
        st.lists(number, min_size=2, max_size=2, unique=True)
        .map(sorted)
        .map(lambda ends: f"{ends[0]}-{ends[1]}")
    )
    step = st.tuples(st.one_of(st.just("*"), span), st.integers(1, high)).map(
        lambda pair: f"{pair[0]}/{pair[1]}"
    )
    single = st.one_of(number.map(str), span, step, *(st.just(text) for text in extra))
    return st.one_of(st.just("*"), number.map(str), st.lists(single, min_size=1, max_size=3).map(",".join))


expressions = st.tuples(
    entries(0, 59),
    entries(0, 23),
    entries(1, 31, "L"),
    entries(1, 12, "FEB"),
    entries(0, 6, "MON", "5L", "2#1"),
).map(" ".join)


def witness(text: str, name: str, after: datetime) -> datetime | None:
    """cronsim, guarded: restarted in the second pass of a fold it can answer with an instant that has
    passed."""
    for local in CronSim(text, after.astimezone(ZoneInfo(name))):
        found = local.astimezone(UTC)
        if found > after:
            return found
    return None


def is_witness(expression: Expression, zone: ZoneInfo, change: int) -> bool:
    """cronsim loses fires where the clocks move by part of an hour (Lord Howe, Kathmandu), and where a gap
    takes the first hour of a day it lands on times that do not match (America/Asuncion, `* 0 * * 0` fires at
    01:00)."""
    before, after = offset_at(zone, change - 1), offset_at(zone, change)
    midnight_gap = after > before and (change + before) % 86_400 < 3600
    return (after - before) % 3600 == 0 and (expression.fixed or not midnight_gap)


# The same examples each time: a fault of the witness must not fail our build one day in a hundred.
@settings(max_examples=300, deadline=None, derandomize=True)
@given(expressions, st.sampled_from(ZONES), st.data())
def test_agrees_with_cronsim(text: str, name: str, data: st.DataObject) -> None:
    """E4, E5, E9 near changes of the clocks, where the two are most likely to differ."""
    change = data.draw(st.sampled_from(changes_of(name)[-40:] or [1_750_000_000]))
    assume(is_witness(Expression(text), ZoneInfo(name), change))
    after = datetime.fromtimestamp(change, UTC) + timedelta(minutes=data.draw(st.integers(-2000, 300)))
    try:
        got = Cron(text, name).next(after)
    except NeverFires:
        return
    assert got == witness(text, name, after)

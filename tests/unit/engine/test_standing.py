"""What a schedule shows at a moment, while the planner works ahead of it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from duetime.model.instant import SECOND, Micros, to_datetime
from duetime.model.schedule import (
    Missed,
    Schedule,
    ScheduleDraft,
    ScheduleStatus,
    plan_fires,
    schedule_status,
)
from duetime.model.when import At, Cron, Every, Unreadable, When

NOW: Micros = 1_000_000 * SECOND
DAY = 86_400 * SECOND


def schedule(
    when: When, cursor: Micros | None, created: Micros = NOW, max_runs: int | None = None
) -> Schedule:
    draft = ScheduleDraft(
        UUID(int=5), "default", "tick", when, "task", None, b"{}", None, "default", 5, None, Missed("all"), "0s", None, None, max_runs,
        None, None,
    )  # fmt: skip
    return Schedule(draft, draft.id, 1, 0, False, None, cursor, None, 0, created, created)


def planned(one: Schedule, now: Micros, horizon: Micros) -> Schedule:
    firing = plan_fires(one, now, horizon)
    return replace(
        one, next_fire_time=firing.next_fire_time, last_fire_time=firing.fires[-1].fire_time, runs=firing.runs
    )


def shown(one: Schedule, now: Micros) -> tuple[float | None, float | None, int]:
    """In seconds since NOW."""
    stands = schedule_status(one, now)
    upcoming, last = (
        (None if moment is None else (moment - NOW) / SECOND)
        for moment in (stands.next_fire_time, stands.last_fire_time)
    )
    return upcoming, last, stands.runs


def test_what_is_planned_ahead_has_not_fired() -> None:
    ahead = planned(schedule(Every("5s"), NOW + 5 * SECOND), NOW, NOW + 60 * SECOND)
    assert shown(ahead, NOW) == (5, None, 0)
    assert shown(ahead, NOW + 5 * SECOND - 1) == (5, None, 0)
    assert shown(ahead, NOW + 5 * SECOND) == (10, 5, 1)
    assert shown(ahead, NOW + 31 * SECOND) == (35, 30, 6)
    assert shown(ahead, NOW + 60 * SECOND) == (65, 60, 12)
    assert shown(ahead, NOW + 3_600 * SECOND) == (65, 60, 12)  # the planner is late, and that shows


def test_the_last_of_its_runs_is_still_to_come_when_all_are_planned() -> None:
    ahead = planned(schedule(Every("5s"), NOW + 5 * SECOND, max_runs=3), NOW, NOW + 60 * SECOND)
    assert ahead.next_fire_time is None
    assert shown(ahead, NOW + 12 * SECOND) == (15, 10, 2)
    assert shown(ahead, NOW + 15 * SECOND) == (None, 15, 3)


def test_an_instant_that_is_planned_is_the_next() -> None:
    ahead = planned(schedule(At(to_datetime(NOW + 10 * SECOND)), NOW + 10 * SECOND), NOW, NOW + 60 * SECOND)
    assert shown(ahead, NOW) == (10, None, 0)
    assert shown(ahead, NOW + 10 * SECOND) == (None, 10, 1)


def test_a_rare_fire_is_found_however_long_ago_it_was() -> None:
    yearly = schedule(Cron("0 0 1 1 *"), 365 * DAY, created=0)
    ahead = replace(planned(yearly, 365 * DAY, 730 * DAY), runs=2)
    assert schedule_status(ahead, 730 * DAY - 1) == ScheduleStatus(730 * DAY, 365 * DAY, 1)


def test_a_fire_before_the_last_edit_is_not_claimed_for_the_new_rule() -> None:
    ahead = planned(schedule(Every("5s"), NOW + 5 * SECOND, created=NOW + 1), NOW, NOW + 20 * SECOND)
    assert shown(replace(ahead, runs=100), NOW + 2) == (5, None, 96)


def test_a_paused_schedule_has_no_next_fire() -> None:
    assert shown(replace(schedule(Every("5s"), NOW + 5 * SECOND), paused=True), NOW) == (None, None, 0)


def test_what_cannot_be_read_stands_as_it_is_stored() -> None:
    unreadable = Unreadable((("cron", "* * * * *"), ("tz", "Nowhere/Gone")), "unknown zone")
    ahead = replace(schedule(unreadable, NOW + 9 * SECOND), last_fire_time=NOW + 5 * SECOND, runs=1)
    assert shown(ahead, NOW) == (9, 5, 1)


@given(st.integers(1, 400), st.integers(0, 3_000), st.integers(1, 3_000))
def test_it_shows_the_same_however_far_the_planner_is_ahead(interval: int, moment: int, more: int) -> None:
    now = NOW + moment * SECOND
    fresh = schedule(
        Every(f"{interval}s"), NOW // (interval * SECOND) * interval * SECOND + interval * SECOND
    )
    assert fresh.next_fire_time is not None
    near = fresh if fresh.next_fire_time > now else planned(fresh, now, now)
    far = planned(fresh, now, max(now + more * SECOND, fresh.next_fire_time))
    assert schedule_status(far, now) == schedule_status(near, now)

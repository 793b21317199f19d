"""From a cursor to fires: all of them, none twice, missed ones by policy, and the cursor right behind the
last (I10, E13)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.model.instant import SECOND, Micros
from duetime.model.schedule import (
    LATE_AFTER,
    MAX_FIRES_PER_STEP,
    Firing,
    Missed,
    Schedule,
    ScheduleDraft,
    first_fire,
    plan_fires,
)
from duetime.model.when import Every

NOW: Micros = 1_000_000 * SECOND


def draft(
    missed: Missed = Missed("all"),
    jitter: str = "0s",
    end_at: Micros | None = None,
    max_runs: int | None = None,
) -> ScheduleDraft:
    return ScheduleDraft(
        UUID(int=5), "default", "tick", Every("1s"), "task", None, b"{}", None, "default", 5, None, missed, jitter, None, end_at, max_runs,
        None, None,
    )  # fmt: skip


def schedule(of: ScheduleDraft, cursor: Micros, runs: int = 0, last: Micros | None = None) -> Schedule:
    return Schedule(of, of.id, 1, 0, False, None, cursor, last, runs, 0, 0)


def times(firing: Firing, skipped: bool = False) -> list[int]:
    return [
        (fire.fire_time - NOW) // SECOND for fire in firing.fires if (fire.skip_reason is not None) is skipped
    ]


def test_fires_up_to_the_horizon_and_the_cursor_behind_them() -> None:
    firing = plan_fires(schedule(draft(), NOW + SECOND), NOW, NOW + 3 * SECOND)
    assert times(firing) == [1, 2, 3]
    assert firing.next_fire_time == NOW + 4 * SECOND
    assert (firing.cursor, firing.runs) == (NOW + SECOND, 3)


@pytest.mark.parametrize(
    ("missed", "run", "skipped"),
    [
        (Missed("all"), [-9, -8, -7, -6, -5, -4], []),
        (Missed("all", max=2), [-7, -6, -5, -4], [-9, -8]),
        (Missed("all", within="7s"), [-7, -6, -5, -4], [-9, -8]),
        (Missed("latest"), [-6, -5, -4], [-9, -8, -7]),
        (Missed("skip"), [-5, -4], [-9, -8, -7, -6]),
    ],
)
def test_missed_fires_follow_the_policy_and_none_is_forgotten(
    missed: Missed, run: list[int], skipped: list[int]
) -> None:
    firing = plan_fires(schedule(draft(missed), NOW - 9 * SECOND), NOW, NOW - 4 * SECOND)
    assert (times(firing), times(firing, skipped=True)) == (run, skipped)
    assert LATE_AFTER == 5 * SECOND


def test_the_latest_missed_fire_may_come_in_a_later_turn() -> None:
    behind = NOW - 2 * MAX_FIRES_PER_STEP * SECOND
    firing = plan_fires(schedule(draft(Missed("latest")), behind), NOW, NOW)
    assert times(firing) == []
    assert len(firing.fires) == MAX_FIRES_PER_STEP


@pytest.mark.parametrize(
    ("missed", "ran"), [(Missed("latest"), 1), (Missed("all", max=3), 3), (Missed("all", max=1_000), 1_000)]
)
@pytest.mark.parametrize("max_runs", [None, 3_500])
def test_maximum_of_missed_fires_holds_over_all_steps_of_an_outage(
    missed: Missed, ran: int, max_runs: int | None
) -> None:
    known = schedule(draft(missed, max_runs=max_runs), NOW - 3_600 * SECOND)
    late: list[int] = []
    while known.next_fire_time is not None and known.next_fire_time <= NOW:
        firing = plan_fires(known, NOW, NOW)
        late += [second for second in times(firing) if second < -5]
        known = replace(known, next_fire_time=firing.next_fire_time, runs=firing.runs)
    newest = -6 if max_runs is None else max_runs - 3_600 - 1
    assert late == list(range(newest - ran + 1, newest + 1))


def test_fires_that_became_jobs_before_an_edit_are_not_repeated() -> None:
    firing = plan_fires(schedule(draft(), NOW + SECOND, last=NOW + 2 * SECOND), NOW, NOW + 4 * SECOND)
    assert times(firing) == [3, 4]


def test_max_runs_ends_it() -> None:
    firing = plan_fires(schedule(draft(max_runs=5), NOW + SECOND, runs=3), NOW, NOW + 60 * SECOND)
    assert times(firing) == [1, 2]
    assert firing.next_fire_time is None


def test_end_at_ends_it() -> None:
    of = draft(end_at=NOW + 2 * SECOND)
    firing = plan_fires(schedule(of, NOW + SECOND), NOW, NOW + 60 * SECOND)
    assert times(firing) == [1, 2]
    assert firing.next_fire_time is None
    assert first_fire(of, NOW + 2 * SECOND) is None


@given(st.integers(1, 5 * SECOND), st.integers(0, 40))
def test_jitter_is_bounded_and_the_same_for_every_planner(longest: Micros, count: int) -> None:
    jitter = f"{longest // 2}us..{longest}us"
    first, second = (
        plan_fires(schedule(draft(jitter=jitter), NOW), NOW, NOW + count * SECOND) for _ in range(2)
    )
    assert first == second
    assert all(longest // 2 <= fire.due_at - fire.fire_time <= longest for fire in first.fires)


@given(
    st.lists(st.integers(0, 5_000_000), min_size=1, max_size=10), st.sampled_from(["all", "latest", "skip"])
)
def test_step_by_step_every_second_is_accounted_for_once(gaps: list[Micros], policy: str) -> None:
    """Whatever the times at which planners come round: each fire once, run or skipped with a reason (I10)."""
    state, now, seen = schedule(draft(Missed(policy)), NOW), NOW, list[Micros]()  # type: ignore[arg-type]  # one of the three
    for gap in gaps:
        now += 3 * gap
        if state.next_fire_time is not None and state.next_fire_time <= now:
            firing = plan_fires(state, now, now)
            seen += [fire.fire_time for fire in firing.fires]
            assert firing.next_fire_time is not None
            state = schedule(state.draft, firing.next_fire_time, firing.runs, seen[-1])
    assert seen == list(range(NOW, NOW + len(seen) * SECOND, SECOND))
    assert not seen or seen[-1] + SECOND > now

"""Why a schedule fires, or does not fire: one sentence, from facts that were read from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from duetime.model.describe.text import counted
from duetime.model.describe.when import describe
from duetime.model.instant import Micros
from duetime.model.schedule import Change, Schedule, ScheduleVersion, schedule_status
from duetime.model.when import Unreadable, When, wall_clock
from duetime.model.why import JUST_NOW, Why
from duetime.model.why_facts import FleetStatus, at
from duetime.model.zone import UTC_ZONE, Zone


def explain_schedule(
    schedule: Schedule, fleet: FleetStatus, versions: Sequence[ScheduleVersion], zone: Zone | None = None
) -> Why:
    """`versions` are the latest changes, newest first. Times are in `zone`, or in that of the schedule."""
    if isinstance(schedule.draft.when, Unreadable):
        return Why("unreadable", f"cannot fire: {schedule.draft.when.problem}", None, "replace its `when`")
    now, show = fleet.now, partial(at, now=fleet.now, zone=zone or _own_zone(schedule.draft.when))
    if schedule.paused:
        return _paused(schedule, show, versions)
    stands = schedule_status(schedule, now)
    if stands.next_fire_time is None:
        return _over(schedule, now, show)
    if not fleet.living("planner"):
        why = f"would fire at {show(stands.next_fire_time)}, but no planner is alive"
        return Why("no_planner", why, None, "start a planner")
    if stands.next_fire_time < now - JUST_NOW:
        why = f"is late: its fire of {show(stands.next_fire_time)} is not planned yet"
        return Why("planner_late", why, stands.next_fire_time, "check the planners' logs if this continues")
    return Why(
        "fires",
        f"fires next at {show(stands.next_fire_time)}: {describe(schedule.draft.when)}",
        stands.last_fire_time,
    )


def _own_zone(when: When) -> Zone:
    wall = wall_clock(when)
    return UTC_ZONE if wall is None else wall.zone


def _paused(schedule: Schedule, show: Callable[[Micros], str], versions: Sequence[ScheduleVersion]) -> Why:
    change = next((one for one in versions if one.change is Change.PAUSED), None)
    since = schedule.updated_at if change is None else change.at
    by = "" if change is None or change.author is None else f" by {change.author}"
    note = f" ({schedule.pause_note})" if schedule.pause_note else ""
    return Why(
        "paused", f"does not fire: it has been paused since {show(since)}{by}{note}", since, "resume it"
    )


def _over(schedule: Schedule, now: Micros, show: Callable[[Micros], str]) -> Why:
    draft, last = schedule.draft, schedule.last_fire_time
    ending = "" if last is None else f"; its last fire was at {show(last)}"
    if draft.max_runs is not None and schedule.runs >= draft.max_runs:
        fired = f"it has fired {counted(schedule.runs, 'time')}, and max_runs is {draft.max_runs}"
        why = f"does not fire any more: {fired}{ending}"
        return Why("runs_spent", why, last, "raise max_runs, or remove it")
    if draft.end_at is not None and (draft.end_at <= now or draft.when.next_us(now) is not None):
        ends = "ended" if draft.end_at <= now else "ends"
        why = f"does not fire any more: it {ends} at {show(draft.end_at)}{ending}"
        return Why("ended", why, draft.end_at, "move end_at, or remove it")
    return Why(
        "over",
        f'does not fire any more: "{describe(draft.when)}" has no more instants{ending}',
        last,
        "give it another `when`",
    )

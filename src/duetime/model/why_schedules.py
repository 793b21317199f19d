"""Why a schedule fires when it does, or does not: one sentence, from facts that were read of the store."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.errors import InvalidInput
from duetime.model.instant import Micros
from duetime.model.schedule import Change, Schedule, ScheduleVersion, first_fire
from duetime.model.when import Unreadable, describe
from duetime.model.why import A_MOMENT, Fleet, Why, at, counted


def explain_schedule(schedule: Schedule, fleet: Fleet, versions: Sequence[ScheduleVersion]) -> Why:
    """`versions` are the latest changes, newest first."""
    if isinstance(schedule.draft.when, Unreadable):
        return Why("unreadable", f"cannot fire: {schedule.draft.when.problem}", None, "replace its `when`")
    if schedule.paused:
        return _paused(schedule, fleet.now, versions)
    following = _next(schedule, fleet.now)
    if following is None:
        return _over(schedule, fleet.now)
    if not fleet.living("planner"):
        return Why("no_planner", f"would fire at {at(following, fleet.now)}, but no planner is alive", None, "start a planner")
    cursor = schedule.next_fire_time
    if cursor is not None and cursor < fleet.now - A_MOMENT:
        why = f"is late: its fire of {at(cursor, fleet.now)} is not planned yet"
        return Why("planner_late", why, cursor, "look at the logs of the planners if this lasts")
    return Why("fires", f"fires next at {at(following, fleet.now)}: {describe(schedule.draft.when)}", schedule.last_fire_time)


def _paused(schedule: Schedule, now: Micros, versions: Sequence[ScheduleVersion]) -> Why:
    change = next((one for one in versions if one.change is Change.PAUSED), None)
    since = schedule.updated_at if change is None else change.at
    by = "" if change is None or change.author is None else f" by {change.author}"
    note = f" ({schedule.pause_note})" if schedule.pause_note else ""
    return Why("paused", f"does not fire: it is paused since {at(since, now)}{by}{note}", since, "resume it")


def _next(schedule: Schedule, now: Micros) -> Micros | None:
    """The first fire that is still to come, whether it is planned already or not."""
    try:
        found = first_fire(schedule.draft, now)
    except InvalidInput:
        return schedule.next_fire_time
    planned = schedule.last_fire_time is not None and found is not None and found <= schedule.last_fire_time
    return found if planned or schedule.next_fire_time is not None else None


def _over(schedule: Schedule, now: Micros) -> Why:
    draft, last = schedule.draft, schedule.last_fire_time
    ending = "" if last is None else f"; its last fire was at {at(last, now)}"
    if draft.max_runs is not None and schedule.runs >= draft.max_runs:
        why = f"does not fire any more: it has fired {counted(schedule.runs, 'time')}, and max_runs is {draft.max_runs}{ending}"
        return Why("runs_spent", why, last, "raise max_runs, or remove it")
    if draft.end_at is not None and (draft.end_at <= now or draft.when.next_us(now) is not None):
        ends = "ended" if draft.end_at <= now else "ends"
        why = f"does not fire any more: it {ends} at {at(draft.end_at, now)}{ending}"
        return Why("ended", why, draft.end_at, "move end_at, or remove it")
    return Why("over", f'does not fire any more: no instant is left of "{describe(draft.when)}"{ending}', last, "give it another `when`")

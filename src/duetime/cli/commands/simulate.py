"""`duetime simulate`: all schedules on a virtual clock: load, herds, and the effects of clock changes."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from duetime.cli.backend import active_schedules, with_backend
from duetime.cli.command import command, standalone
from duetime.cli.completion import complete_zone
from duetime.cli.format import iso, local, plural, say, show_json
from duetime.cli.inputs import JsonFlag, read_instant
from duetime.cli.program import value_option
from duetime.clock import wall_micros
from duetime.model import duration
from duetime.model.forecast import ClockChangeEffects, Forecast, Planned, forecast
from duetime.model.instant import SECOND, Micros, to_micros
from duetime.model.views import ScheduleView
from duetime.model.when import Cron, Every

commands = standalone()

BAR_WIDTH = 40
MAX_HOURS = 72
MAX_EFFECTS = 20
DAY = 86_400 * SECOND
EFFECTS = {
    "moved": "in the gap: run once, right after it",
    "left_out": "in the gap: left out",
    "repeated": "run a second time",
    "once": "in the repeated hour: run once, the first time",
}


@command(
    commands,
    "simulate",
    "duetime simulate --days 7",
    'duetime simulate --cron "0 * * * *" --cron "30 2 * * *" --tz Europe/Berlin --from 2030-03-30T00:00:00Z',
)
def simulate(
    context: typer.Context,
    days: Annotated[int, value_option("--days", "N", "How many days.", min=1, max=366)] = 1,
    start: Annotated[
        str | None, value_option("--from", "ISO", "Start at this instant; now by default.")
    ] = None,
    cron: Annotated[
        list[str] | None,
        value_option("--cron", "EXPR", "Use this instead of the stored schedules; may be repeated."),
    ] = None,
    every: Annotated[
        list[str] | None, value_option("--every", "TIME", "The same for an interval; may be repeated.")
    ] = None,
    tz: Annotated[
        str, value_option("--tz", "ZONE", "The time zone of --cron.", autocompletion=complete_zone)
    ] = "UTC",
    as_json: JsonFlag = False,
) -> None:
    """Show the fires of all active schedules without running anything: by hour, the busiest minute, herds,
    and clock changes."""
    began = read_instant(start, "from")
    given = [Planned(expr, Cron(expr, tz)) for expr in cron or []]
    given += [Planned(f"every {interval}", Every(interval)) for interval in every or []]
    planned = given or [_planned(one) for one in with_backend(context, active_schedules)]
    first = wall_micros() if began is None else to_micros(began)
    result = forecast(planned, first, first + days * DAY)
    if as_json:
        show_json(_record(result))
    else:
        _show_forecast(result, first + days * DAY)


def _planned(one: ScheduleView) -> Planned:
    left = None if one.max_runs is None else max(0, one.max_runs - one.runs)
    start, end = (None if bound is None else to_micros(bound) for bound in (one.start_at, one.end_at))
    return Planned(one.name, one.when, start, end, left)


def _record(result: Forecast) -> dict[str, Any]:
    return {
        "start": iso(result.start),
        "end": iso(result.end),
        "schedules": result.schedules,
        "fires": result.fires,
        "by_hour": [{"hour": iso(hour), "fires": fires} for hour, fires in result.by_hour],
        "peak_minute": None
        if result.peak is None
        else {"minute": iso(result.peak[0]), "fires": result.peak[1]},
        "herds": [
            {"at": iso(herd.at), "fires": herd.count, "schedules": list(herd.names)} for herd in result.herds
        ],
        "clock_changes": [_change_record(change) for change in result.clock_changes],
    }


def _change_record(change: ClockChangeEffects) -> dict[str, Any]:
    effects = [
        {"schedule": effect.name, "effect": effect.kind, "fires": effect.count} for effect in change.effects
    ]
    return {"tz": change.tz, "at": iso(change.at), "shift_seconds": change.shift, "effects": effects}


def _show_forecast(result: Forecast, wanted_end: Micros) -> None:
    what = f"{plural(result.schedules, 'schedule')}, {plural(result.fires, 'fire')}"
    say(f"{what} from {local(result.start)} to {local(result.end)}")
    if result.end < wanted_end:
        say(f"(stopped after {result.fires:,} fires)")
    if result.peak is not None:
        say(f"busiest minute: {local(result.peak[0])} with {plural(result.peak[1], 'fire')}")
    _show_hours(result)
    _show_herds(result)
    for change in result.clock_changes:
        _show_change(change)


def _show_hours(result: Forecast) -> None:
    highest = max((fires for _, fires in result.by_hour), default=0)
    if not highest:
        return
    say(
        "\nfires by hour"
        + (f" (the first {MAX_HOURS} hours; --json has all)" if len(result.by_hour) > MAX_HOURS else "")
    )
    for hour, fires in result.by_hour[:MAX_HOURS]:
        bar = "#" * (-(-fires * BAR_WIDTH // highest))
        say(f"  {local(hour)}  {fires:>9,}  {bar}".rstrip())


def _show_herds(result: Forecast) -> None:
    if result.herds:
        say("\nherds: fires at the same instant (use jitter, or H in a cron expression, to spread them)")
    for herd in result.herds:
        more = f" and {herd.count - len(herd.names):,} more" if herd.count > len(herd.names) else ""
        say(f"  {local(herd.at)}  {herd.count:>6,}  {', '.join(herd.names)}{more}")


def _show_change(change: ClockChangeEffects) -> None:
    shift = duration.show(abs(change.shift) * SECOND)
    direction = f"forward by {shift}" if change.shift > 0 else f"back by {shift}"
    say(f"\nclocks of {change.tz} go {direction} at {local(change.at, ZoneInfo(change.tz))}")
    for effect in change.effects[:MAX_EFFECTS]:
        say(f"  {effect.name}: {plural(effect.count, 'fire')} {EFFECTS[effect.kind]}")
    if not change.effects:
        say("  no schedule is affected")
    if len(change.effects) > MAX_EFFECTS:
        say(f"  and {len(change.effects) - MAX_EFFECTS} more schedules")

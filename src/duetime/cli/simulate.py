"""`duetime simulate`: all schedules on a virtual clock, days in moments (X2): load, herds, and what changes of the clocks do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command
from duetime.cli.completion import complete_zone
from duetime.cli.flags import JsonFlag, words

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.model.forecast import ClockChange, Forecast, Planned

WIDEST_BAR = 40
MOST_HOURS_SHOWN = 72
MOST_EFFECTS_SHOWN = 20
DAY = 86_400_000_000


def add_simulate(program: typer.Typer) -> None:
    command(
        program,
        "simulate",
        "duetime simulate --days 7",
        'duetime simulate --cron "0 * * * *" --cron "30 2 * * *" --tz Europe/Berlin --from 2030-03-30T00:00:00Z --days 2',
    )(simulate)


def simulate(
    context: typer.Context,
    days: Annotated[int, words("--days", "N", "How long.", min=1, max=366)] = 1,
    start: Annotated[str | None, words("--from", "ISO", "From this instant on; now unless given.")] = None,
    cron: Annotated[list[str] | None, words("--cron", "EXPR", "These, not the stored ones; may be repeated.")] = None,
    every: Annotated[list[str] | None, words("--every", "TIME", "The same for intervals; may be repeated.")] = None,
    tz: Annotated[str, words("--tz", "ZONE", "The zone of --cron.", autocompletion=complete_zone)] = "UTC",
    as_json: JsonFlag = False,
) -> None:
    """Expand all active schedules without running anything: fires by hour, the busiest minute, herds, and clock changes."""
    from duetime.cli.inputs import read_instant
    from duetime.cli.output import show_json
    from duetime.cli.session import with_app
    from duetime.clock import wall_micros
    from duetime.model.forecast import forecast
    from duetime.model.instant import to_micros

    began = read_instant(start, "from")
    given = _given(cron or [], every or [], tz)
    planned = given if given else with_app(context, _stored)
    first = wall_micros() if began is None else to_micros(began)
    result = forecast(planned, first, first + days * DAY)
    if as_json:
        show_json(_record(result))
    else:
        _show(result, first + days * DAY)


def _given(cron: list[str], every: list[str], tz: str) -> list[Planned]:
    from duetime.model.forecast import Planned
    from duetime.model.when import Cron, Every

    return [Planned(expr, Cron(expr, tz)) for expr in cron] + [Planned(f"every {interval}", Every(interval)) for interval in every]


async def _stored(app: App) -> list[Planned]:
    from duetime.cli.reading import all_schedules
    from duetime.model.forecast import Planned

    return [Planned.of(schedule) async for schedule in all_schedules(app) if not schedule.paused]


def _record(result: Forecast) -> dict[str, Any]:
    from duetime.cli.records import iso

    return {
        "start": iso(result.start),
        "end": iso(result.end),
        "schedules": result.schedules,
        "fires": result.fires,
        "by_hour": [{"hour": iso(hour), "fires": fires} for hour, fires in result.by_hour],
        "peak_minute": None if result.peak is None else {"minute": iso(result.peak[0]), "fires": result.peak[1]},
        "herds": [{"at": iso(herd.at), "fires": herd.count, "schedules": list(herd.names)} for herd in result.herds],
        "clock_changes": [_change_record(change) for change in result.clock_changes],
    }


def _change_record(change: ClockChange) -> dict[str, Any]:
    from duetime.cli.records import iso

    effects = [{"schedule": effect.name, "effect": effect.kind, "fires": effect.count} for effect in change.effects]
    return {"tz": change.tz, "at": iso(change.at), "shift_seconds": change.shift, "effects": effects}


def _show(result: Forecast, asked_end: int) -> None:
    from duetime.cli.moments import local
    from duetime.cli.output import say
    from duetime.model.instant import to_datetime

    what = f"{_many(result.schedules, 'schedule')}, {_many(result.fires, 'fire')}"
    say(f"{what} from {local(to_datetime(result.start))} to {local(to_datetime(result.end))}")
    if result.end < asked_end:
        say(f"(stopped after {result.fires:,} fires)")
    if result.peak is not None:
        say(f"busiest minute: {local(to_datetime(result.peak[0]))} with {_many(result.peak[1], 'fire')}")
    _show_hours(result)
    _show_herds(result)
    for change in result.clock_changes:
        _show_change(change)


def _show_hours(result: Forecast) -> None:
    from duetime.cli.moments import local
    from duetime.cli.output import say
    from duetime.model.instant import to_datetime

    highest = max((fires for _, fires in result.by_hour), default=0)
    if not highest:
        return
    say("\nfires by hour" + (f" (the first {MOST_HOURS_SHOWN} hours; --json has all)" if len(result.by_hour) > MOST_HOURS_SHOWN else ""))
    for hour, fires in result.by_hour[:MOST_HOURS_SHOWN]:
        bar = "#" * (-(-fires * WIDEST_BAR // highest))
        say(f"  {local(to_datetime(hour))}  {fires:>9,}  {bar}".rstrip())


def _show_herds(result: Forecast) -> None:
    from duetime.cli.moments import local
    from duetime.cli.output import say
    from duetime.model.instant import to_datetime

    if result.herds:
        say("\nherds: fires at one instant (jitter, or H in a cron expression, spreads them)")
    for herd in result.herds:
        more = f" and {herd.count - len(herd.names):,} more" if herd.count > len(herd.names) else ""
        say(f"  {local(to_datetime(herd.at))}  {herd.count:>6,}  {', '.join(herd.names)}{more}")


def _show_change(change: ClockChange) -> None:
    from zoneinfo import ZoneInfo

    from duetime.cli.moments import local
    from duetime.cli.output import say
    from duetime.model import duration
    from duetime.model.instant import SECOND, to_datetime

    shift = duration.show(abs(change.shift) * SECOND)
    direction = f"forward by {shift}" if change.shift > 0 else f"back by {shift}"
    say(f"\nclocks of {change.tz} go {direction} at {local(to_datetime(change.at), ZoneInfo(change.tz))}")
    words = {
        "moved": "in the gap: run once, right after it",
        "left_out": "in the gap: left out",
        "repeated": "run a second time",
        "once": "in the hour that comes twice: run once, the first time",
    }
    for effect in change.effects[:MOST_EFFECTS_SHOWN]:
        say(f"  {effect.name}: {effect.count} {'fire' if effect.count == 1 else 'fires'} {words[effect.kind]}")
    if not change.effects:
        say("  no schedule is concerned")
    if len(change.effects) > MOST_EFFECTS_SHOWN:
        say(f"  and {len(change.effects) - MOST_EFFECTS_SHOWN} more schedules")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

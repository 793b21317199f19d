"""`duetime schedule preview`: when a schedule, or one you only think of, fires next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duetime.cli.command import command
from duetime.cli.completion import complete_schedule
from duetime.cli.flags import CronFlag, EveryFlag, JsonFlag, RruleFlag, ZoneFlag, words

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from duetime.model.forecast import Planned


def add_preview(parent: typer.Typer) -> None:
    command(
        parent,
        "preview",
        "duetime schedule preview nightly --count 10",
        'duetime schedule preview --cron "30 2 * * *" --tz Europe/Berlin --after 2030-03-30T00:00:00Z',
    )(preview)


def preview(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A stored schedule.", autocompletion=complete_schedule)] = None,
    cron: CronFlag = None,
    tz: ZoneFlag = None,
    every: EveryFlag = None,
    rrule: RruleFlag = None,
    after: Annotated[str | None, words("--after", "ISO", "Fires later than this instant; now unless given.")] = None,
    count: Annotated[int, words("--count", "N", "How many.", min=1, max=10_000)] = 5,
    as_json: JsonFlag = False,
) -> None:
    """The next fire times of a stored schedule, or of the expression given; the latter needs no store."""
    from itertools import islice

    from duetime.cli.inputs import read_instant, read_when
    from duetime.cli.reading import read_schedule
    from duetime.cli.session import with_app
    from duetime.clock import wall_micros
    from duetime.model.forecast import Planned
    from duetime.model.instant import to_datetime, to_micros

    expressions = [cron, every, rrule]
    if (name is None) == (expressions == [None, None, None]):
        raise typer.BadParameter("give the name of a schedule, or one of --cron, --every, --rrule")
    if name is None:
        planned = Planned("", read_when(cron, every, None, rrule, tz))
    else:
        planned = Planned.of(with_app(context, lambda app: read_schedule(app, name)))
    now = to_datetime(wall_micros())
    start = read_instant(after, "after") or now
    fires = [to_datetime(moment) for moment in islice(planned.fires(to_micros(start) + 1), count)]
    _show(planned, fires, now, as_json)


def _show(planned: Planned, fires: list[datetime], now: datetime, as_json: bool) -> None:
    from duetime.cli.output import say, show_json, show_table
    from duetime.model.when import describe

    if as_json:
        zone = _zone_of(planned)
        times = [{"fire_time": _iso(fire), "local": fire.astimezone(zone).isoformat()} for fire in fires]
        show_json({"description": describe(planned.when), "fires": times})
        return
    say(describe(planned.when))
    show_table(*_table(planned, fires, now), empty="no fire is left")


def _table(planned: Planned, fires: list[datetime], now: datetime) -> tuple[list[str], list[list[str]]]:
    """In the schedule's own zone first; beside it this machine's, where that differs."""
    from duetime.cli.moments import local, relative

    zone = _zone_of(planned)
    rows = [[local(fire, zone), local(fire), relative(fire, now)] for fire in fires]
    columns = [f"FIRES AT ({zone})", "LOCAL TIME", "FROM NOW"]
    if all(row[0] == row[1] for row in rows):
        return [columns[0], columns[2]], [[row[0], row[2]] for row in rows]
    return columns, rows


def _zone_of(planned: Planned) -> ZoneInfo:
    from zoneinfo import ZoneInfo

    return ZoneInfo(getattr(planned.when, "tz", "UTC"))


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")

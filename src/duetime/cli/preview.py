"""`duetime schedule preview`: when a schedule, or one you only think of, fires next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duetime.cli.command import command
from duetime.cli.completion import complete_schedule
from duetime.cli.flags import CronFlag, EveryFlag, JsonFlag, RruleFlag, ZoneFlag, words

if TYPE_CHECKING:
    from datetime import datetime

    from duetime.model.when import When
    from duetime.remote.results import Fire, Preview


def add_preview(parent: typer.Typer) -> None:
    command(
        parent,
        "preview",
        "duetime schedule preview nightly --count 10",
        'duetime schedule preview --cron "30 2 * * *" --tz Europe/Berlin --after 2030-03-30T00:00:00Z',
    )(preview)


def preview(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A stored schedule.", autocompletion=complete_schedule)] = None,
    cron: CronFlag = None,
    tz: ZoneFlag = None,
    every: EveryFlag = None,
    rrule: RruleFlag = None,
    after: Annotated[str | None, words("--after", "ISO", "Fires later than this instant; now unless given.")] = None,
    count: Annotated[int, words("--count", "N", "How many.", min=1, max=1_000)] = 5,
    as_json: JsonFlag = False,
) -> None:
    """The next fire times of a stored schedule, or of the expression given, with what changes of the clocks do to them; the latter needs
    neither a store nor a server."""
    from duetime.cli.conversion import plain
    from duetime.cli.inputs import read_instant, read_when
    from duetime.cli.output import show_json
    from duetime.cli.session import with_access

    if (name is None) == ([cron, every, rrule] == [None, None, None]):
        raise typer.BadParameter("give the name of a schedule, or one of --cron, --every, --rrule")
    start = read_instant(after, "after")
    if name is None:
        found = _thought_of(read_when(cron, every, None, rrule, tz), count, start)
    else:
        found = with_access(context, lambda access: access.preview_schedule(name, count=count, after=start))
    if as_json:
        show_json(plain(found))
    else:
        _show(found)


def _thought_of(when: When, count: int, after: datetime | None) -> Preview:
    from itertools import islice

    from duetime.app.planning import fires_after
    from duetime.cli.conversion import preview_of
    from duetime.cli.moments import now_here
    from duetime.model.instant import to_micros
    from duetime.model.preview import previewed

    start = to_micros(after or now_here())
    return preview_of(previewed(when, list(islice(fires_after(when, start, None, None), count)), start))


def _show(found: Preview) -> None:
    from duetime.cli.output import say, show_table

    say(found.words or "")
    show_table(*_table(found.fires), empty="no fire is left")
    for warning in found.warnings:
        say(f"note: {warning}")


def _table(fires: list[Fire]) -> tuple[list[str], list[list[str]]]:
    """In the schedule's own zone first; beside it this machine's where that differs, and notes where there are any."""
    from duetime.cli.moments import local, now_here, relative

    now = now_here()
    rows = [[_own_time(fire), local(fire.at), relative(fire.at, now), fire.note or ""] for fire in fires]
    columns = ["FIRES AT", "LOCAL TIME", "FROM NOW", "NOTE"]
    shown = [0, *([1] if any(row[0] != row[1] for row in rows) else []), 2, *([3] if any(row[3] for row in rows) else [])]
    return [columns[number] for number in shown], [[row[number] for number in shown] for row in rows]


def _own_time(fire: Fire) -> str:
    from duetime.cli.moments import local

    return local(fire.at) if fire.local is None else fire.local.isoformat(sep=" ", timespec="seconds")

"""`duetime shadow`: compare what shadow schedules would have run with what the old system ran."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import typer

from duetime.cli.backend import Backend, time_of, with_backend
from duetime.cli.command import command, group
from duetime.cli.commands.importing import ImportZoneFlag, read_file, zone_of_machine
from duetime.cli.format import local, plural, say, show_json, show_table
from duetime.cli.importing.comparison import Comparison, Timing, Window, compare
from duetime.cli.importing.crontab import line_of
from duetime.cli.importing.old_runs import OldRun, read_runs
from duetime.cli.inputs import JsonFlag, read_instant
from duetime.cli.program import REFUSED, value_option
from duetime.errors import Conflict, InvalidInput
from duetime.model import duration
from duetime.model.shadow import SHADOW
from duetime.model.views import ScheduleView

commands = group("Compare shadow schedules with what another system ran.")

MAX_JOBS = 1_000_000
RAN = frozenset({"pending", "running", "succeeded"})  # as opposed to skipped or cancelled


class Fleet(NamedTuple):
    """The shadow schedules, and the fires of each."""

    schedules: list[ScheduleView]
    fires: Mapping[str, list[datetime]]


@command(
    commands,
    "report",
    "duetime shadow report /var/log/syslog",
    "journalctl -u cron | duetime shadow report - --tz Europe/Berlin",
    "duetime shadow report runs.csv --map old-name=nightly --from 2030-01-01T00:00:00Z",
)
def shadow_report(
    context: typer.Context,
    log: Annotated[str, typer.Argument(metavar="LOG", help="What the old system ran; - for stdin.")],
    form: Annotated[
        str | None,
        value_option("--format", "FORMAT", "cron (syslog) or csv (time,name); found out by default."),
    ] = None,
    tz: ImportZoneFlag = None,
    renamed: Annotated[
        list[str] | None, value_option("--map", "OLD=NAME", "A name in the log, and that of its schedule.")
    ] = None,
    start: Annotated[
        str | None, value_option("--from", "ISO", "Compare from here on; by default from the first line.")
    ] = None,
    end: Annotated[
        str | None, value_option("--to", "ISO", "Compare up to here; by default up to the last line.")
    ] = None,
    within: Annotated[str, value_option("--within", "TIME", "A difference up to this is the same.")] = "10s",
    near: Annotated[
        str, value_option("--near", "TIME", "A difference up to this is early or late, not missing.")
    ] = "10m",
    limit: Annotated[int, value_option("--limit", "N", "List so many differences.", min=0)] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Compare the fires of schedules with `shadow: true` with the log of the old system. Exit status 1 if
    something is missing or extra."""
    text = sys.stdin.read() if log == "-" else read_file(log)
    place = ZoneInfo(zone_of_machine(tz))
    names = _pairs(renamed or ())
    first, last = read_instant(start, "from"), read_instant(end, "to")

    async def work(backend: Backend) -> list[Comparison]:
        runs = read_runs(text, form, place, await time_of(backend))
        if not runs:
            raise Conflict(f"{log}: there is no run in it: name another log, or its --format")
        window = Window(
            first or runs[0].at,
            last or runs[-1].at,
            _span(within, "within"),
            _span(near, "near"),
        )
        return compared(await _fleet(backend, window), runs, window, names)

    found = with_backend(context, work)
    if as_json:
        show_json([_as_json(one) for one in found])
    else:
        _show(found, limit)
    if any(one.count(timing) for one in found for timing in (Timing.MISSING, Timing.EXTRA)):
        raise typer.Exit(REFUSED)


async def _fleet(backend: Backend, window: Window) -> Fleet:
    schedules = await backend.schedules(limit=MAX_JOBS, target=SHADOW)
    if not schedules:
        raise Conflict("there is no shadow schedule: apply a file with `shadow: true` first")
    jobs = await backend.jobs(
        target=SHADOW,
        due_after=window.start - window.near,
        due_before=window.end + window.near,
        limit=MAX_JOBS,
    )
    fires: dict[str, list[datetime]] = defaultdict(list)
    for job in jobs:
        if job.schedule is not None and job.state in RAN:
            fires[job.schedule].append(job.fire_time)
    return Fleet(schedules, fires)


def compared(
    fleet: Fleet, runs: Sequence[OldRun], window: Window, renamed: Mapping[str, str]
) -> list[Comparison]:
    """One for each name or command that a shadow schedule has, from the time that the schedule exists; then
    the names in the log that no schedule has, whose runs are all missing."""
    groups: dict[str, list[ScheduleView]] = defaultdict(list)
    by_name = {run.name for run in runs} | set(renamed.values())
    for one in fleet.schedules:
        line = line_of(one.target["target"])
        groups[one.name if line is None or one.name in by_name else line].append(one)
    times: dict[str, list[datetime]] = defaultdict(list)
    for run in runs:
        times[renamed.get(run.name, run.name)].append(run.at)
    found = []
    for key, members in groups.items():
        start = max(window.start, min(one.created_at for one in members))
        own = Window(start, window.end, window.same, window.near)
        fires = [fire for one in members for fire in fleet.fires.get(one.name, ())]
        found.append(compare(", ".join(one.name for one in members), fires, times.pop(key, []), own))
    return found + [compare(f"{key} (no schedule)", [], rest, window) for key, rest in sorted(times.items())]


def _show(found: Sequence[Comparison], limit: int) -> None:
    columns = ("SCHEDULE", *(timing.upper() for timing in Timing))
    show_table(columns, [(one.names, *(str(one.count(each)) for each in Timing)) for one in found], "")
    differences = [(one.names, other) for one in found for other in one.others]
    for names, other in differences[:limit]:
        fire, run = (None if moment is None else local(moment) for moment in (other.fire, other.run))
        what = f"fires {fire}, ran {run}" if fire and run else f"fires {fire}" if fire else f"ran {run}"
        say(f"{other.timing}: {names}: {what}")
    if len(differences) > limit:
        say(f"{plural(len(differences) - limit, 'difference')} more: see --limit and --json")
    totals = {timing: sum(one.count(timing) for one in found) for timing in Timing}
    say(", ".join(f"{totals[timing]:,} {timing}" for timing in Timing))


def _as_json(one: Comparison) -> dict[str, Any]:
    counts = {str(timing): one.count(timing) for timing in Timing}
    others = [{"timing": other.timing, "fire": other.fire, "run": other.run} for other in one.others]
    return {"schedule": one.names, **counts, "differences": others}


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise InvalidInput("map", f"{text!r} must be written OLD=NAME")
        found[old] = new
    return found


def _span(text: str, field: str) -> timedelta:
    return timedelta(microseconds=duration.parse(text, field))

"""`duetime schedule`: declare, look at, stop and start recurring jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command, group
from duetime.cli.completion import complete_schedule, complete_task
from duetime.cli.flags import (
    CronFlag,
    EveryFlag,
    JsonFlag,
    LimitFlag,
    PayloadFlag,
    PriorityFlag,
    QueueFlag,
    RruleFlag,
    YesFlag,
    ZoneFlag,
    words,
)
from duetime.cli.preview import add_preview

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.handle import ScheduleView
    from duetime.model.schedule import Schedule

schedule = group("Declare recurring jobs and see when they fire.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.", autocompletion=complete_schedule)]


@command(
    schedule,
    "add",
    'duetime schedule add nightly report.build --cron "30 2 * * MON-FRI" --tz Europe/Berlin',
    "duetime schedule add pulse health.check --every 30s --overlap skip",
    'duetime schedule add payday salary.pay --rrule "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0;BYSECOND=0"',
)
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")],
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task to run.", autocompletion=complete_task)],
    cron: CronFlag = None,
    tz: ZoneFlag = None,
    every: EveryFlag = None,
    at: Annotated[str | None, words("--at", "ISO", "One instant.")] = None,
    rrule: RruleFlag = None,
    payload: PayloadFlag = None,
    overlap: Annotated[str, words("--overlap", "POLICY", "While one runs: allow, skip, queue or cancel_previous.")] = "allow",
    missed: Annotated[str, words("--missed", "POLICY", "Of fires missed while no node ran: latest, all or skip.")] = "latest",
    within: Annotated[str | None, words("--within", "TIME", "How old a missed fire may be and still run.")] = None,
    jitter: Annotated[str, words("--jitter", "TIME", "Spread the jobs over this time.")] = "0s",
    start_at: Annotated[str | None, words("--start-at", "ISO", "No fire before this instant.")] = None,
    end_at: Annotated[str | None, words("--end-at", "ISO", "No fire after this instant.")] = None,
    max_runs: Annotated[int | None, words("--max-runs", "N", "Stop after so many fires.")] = None,
    queue: QueueFlag = None,
    priority: PriorityFlag = None,
    replace: Annotated[bool, typer.Option("--replace", help="Change the schedule of this name, if there is one.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Declare a schedule. Declaring the same again changes nothing."""
    from duetime.cli.inputs import read_when
    from duetime.cli.reading import read_schedule
    from duetime.cli.session import with_app

    options = _options(payload, missed, within, start_at, end_at, queue=queue, priority=priority)
    when = read_when(cron, every, at, rrule, tz)

    async def work(app: App) -> Schedule:
        await app.schedule(name, task, when, replace=replace, overlap=overlap, jitter=jitter, max_runs=max_runs, **options)
        return await read_schedule(app, name)

    _show(with_app(context, work, creates=True), as_json)


def _options(payload: str | None, missed: str, within: str | None, start_at: str | None, end_at: str | None, **own: Any) -> dict[str, Any]:
    """What needs reading; `own` is left to the task's defaults where it was not given."""
    from duetime.cli.inputs import read_instant, read_payload
    from duetime.model.schedule import Missed

    return {
        "payload": read_payload(payload),
        "missed": Missed(missed, within=within),  # type: ignore[arg-type]  # Missed itself refuses what is no policy
        "start_at": read_instant(start_at, "start_at"),
        "end_at": read_instant(end_at, "end_at"),
        **{name: value for name, value in own.items() if value is not None},
    }


@command(schedule, "list", "duetime schedule list --json")
def list_schedules(
    context: typer.Context,
    limit: LimitFlag = 100,
    after: Annotated[str | None, words("--after", "NAME", "Go on after this name.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Schedules by name."""
    from duetime.cli.output import show_json, show_table
    from duetime.cli.records import schedule_record
    from duetime.cli.session import with_app
    from duetime.model.schedule import ScheduleFilter

    found = with_app(context, lambda app: app.store.list_schedules(ScheduleFilter(app.tenant), limit, after))
    if as_json:
        show_json([schedule_record(one) for one in found])
        return
    show_table(("NAME", "STATE", "TASK", "WHEN", "NEXT FIRE", "RUNS"), [_row(one) for one in found], "no schedules")


@command(schedule, "show", "duetime schedule show nightly")
def show(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """One schedule, with all its policies."""
    from duetime.cli.reading import read_schedule
    from duetime.cli.session import with_app

    _show(with_app(context, lambda app: read_schedule(app, name)), as_json)


@command(schedule, "pause", "duetime schedule pause nightly --note 'month end'")
def pause(
    context: typer.Context,
    name: Name,
    note: Annotated[str | None, words("--note", "TEXT", "Why; shown with the schedule.")] = None,
) -> None:
    """No more fires until it is resumed; those planned and not started are withdrawn."""
    _say_state(context, name, lambda app: app.pause(name, note))


@command(schedule, "resume", "duetime schedule resume nightly")
def resume(context: typer.Context, name: Name) -> None:
    """Fire again from now on; what fell into the pause stays out."""
    _say_state(context, name, lambda app: app.resume(name))


@command(schedule, "trigger", "duetime schedule trigger nightly")
def trigger(context: typer.Context, name: Name) -> None:
    """One job of this schedule now, beside its own fires; prints its id."""
    from duetime.cli.output import say
    from duetime.cli.session import with_app

    say(str(with_app(context, lambda app: app.trigger(name)).id))


@command(schedule, "remove", "duetime schedule remove nightly --yes")
def remove(context: typer.Context, name: Name, yes: YesFlag = False) -> None:
    """No more fires. A running job finishes; history stays."""
    from duetime.cli.escape import visible
    from duetime.cli.output import say
    from duetime.cli.reading import read_schedule
    from duetime.cli.session import with_app

    with_app(context, lambda app: read_schedule(app, name))
    if not yes:
        typer.confirm(f"Remove the schedule {visible(name)}?", abort=True, err=True)
    with_app(context, lambda app: app.remove(name))
    say(f"{name} removed")


add_preview(schedule)


def _say_state(context: typer.Context, name: str, change: Any) -> None:
    from duetime.cli.moments import full
    from duetime.cli.output import say
    from duetime.cli.session import with_app
    from duetime.clock import wall_micros
    from duetime.model.instant import to_datetime

    view: ScheduleView = with_app(context, change)
    following = full(view.next_fire_time, to_datetime(wall_micros()), "none is left")
    say(f"{name} is paused" if view.paused else f"{name} is active; next fire: {following}")


def _show(found: Schedule, as_json: bool) -> None:
    from duetime.cli.output import Field, show_json, show_record
    from duetime.cli.records import schedule_record
    from duetime.cli.shown import shown_fields

    record = schedule_record(found)
    if as_json:
        show_json(record)
        return
    show_record([Field(name, value) for name, value in shown_fields(record) if value])


def _row(found: Schedule) -> tuple[str, ...]:
    from duetime.cli.moments import full
    from duetime.cli.records import moment_of
    from duetime.clock import wall_micros
    from duetime.model.instant import to_datetime
    from duetime.model.when import describe

    following = "-" if found.paused else full(moment_of(found.next_fire_time), to_datetime(wall_micros()))
    state = "paused" if found.paused else "active"
    return found.draft.name, state, found.draft.target, describe(found.draft.when), following, str(found.runs)

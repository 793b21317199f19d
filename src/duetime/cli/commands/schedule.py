"""`duetime schedule`: add, list, show, preview, pause, resume, trigger and remove schedules."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from duetime.cli.backend import Backend, with_backend
from duetime.cli.command import command, group
from duetime.cli.commands import schedule_edit
from duetime.cli.completion import complete_schedule
from duetime.cli.format import (
    local,
    moment_text,
    now_here,
    relative,
    say,
    show,
    show_fields,
    show_list,
    show_table,
    target_text,
    visible,
)
from duetime.cli.inputs import (
    CronFlag,
    DeliveryFlag,
    EndAtFlag,
    EveryFlag,
    ExpiresFlag,
    InQueueFlag,
    JitterFlag,
    JsonFlag,
    LabelsFlag,
    LimitFlag,
    MaxAttemptsFlag,
    MaxRunsFlag,
    MissedFlag,
    MissedWaitingFlag,
    OfLabelFlag,
    OfOwnerFlag,
    OfTargetFlag,
    OnceFlag,
    OverlapFlag,
    OwnerFlag,
    PayloadFlag,
    PriorityFlag,
    QueueFlag,
    RetryDelayFlag,
    RruleFlag,
    ScheduleArgument,
    StartAtFlag,
    TargetFlags,
    TextFlag,
    TimeoutFlag,
    WithinFlag,
    ZoneFlag,
    read_instant,
    read_label,
    read_labels,
    read_payload,
    read_retry,
    read_when,
)
from duetime.cli.program import value_option
from duetime.cli.selection import SCHEDULE_FILTERS, Action, Selection, selection_flags
from duetime.engine.submit.validate import check_max_runs, check_overlap
from duetime.errors import ScheduleExists
from duetime.model.forecast import preview as preview_of
from duetime.model.instant import to_micros
from duetime.model.schedule import Missed
from duetime.model.views import FireView, PreviewView, ScheduleView

commands = group("Add, list, edit, pause and preview schedules.")

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="The names of schedules.", autocompletion=complete_schedule),
]
Chosen = Annotated[Selection, selection_flags(**SCHEDULE_FILTERS)]


@command(
    commands,
    "add",
    'duetime schedule add nightly report.build --cron "30 2 * * MON-FRI" --tz Europe/Berlin',
    "duetime schedule add pulse https://agent.example.org/health --method GET --every 30s --overlap skip",
    'duetime schedule add backup --shell "cd /srv/shop && ./backup" --cron "0 3 * * *" --timeout 1h',
    'duetime schedule add pay salary.pay --rrule "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0;BYSECOND=0"',
)
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")],
    target: TargetFlags,
    cron: CronFlag = None,
    tz: ZoneFlag = None,
    every: EveryFlag = None,
    at: OnceFlag = None,
    rrule: RruleFlag = None,
    payload: PayloadFlag = None,
    overlap: OverlapFlag = "allow",
    missed: MissedFlag = "latest",
    within: WithinFlag = None,
    missed_waiting: MissedWaitingFlag = False,
    jitter: JitterFlag = "0s",
    start_at: StartAtFlag = None,
    end_at: EndAtFlag = None,
    max_runs: MaxRunsFlag = None,
    timeout: TimeoutFlag = None,
    max_attempts: MaxAttemptsFlag = None,
    retry_delay: RetryDelayFlag = None,
    delivery: DeliveryFlag = None,
    expires: ExpiresFlag = None,
    queue: QueueFlag = None,
    priority: PriorityFlag = None,
    owner: OwnerFlag = None,
    label: LabelsFlag = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Change the schedule of this name if it exists.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a schedule. If the same schedule exists, nothing changes."""
    check_overlap(overlap)
    options: dict[str, Any] = {
        "payload": read_payload(payload), "overlap": overlap, "jitter": jitter,
        "missed": Missed(missed, within, waiting=missed_waiting),  # type: ignore[arg-type]  # Missed itself refuses unknown policies
        "start_at": read_instant(start_at, "start_at"), "end_at": read_instant(end_at, "end_at"),
        "max_runs": check_max_runs(max_runs), "timeout": timeout, "delivery": delivery, "expires": expires,
        "retry": read_retry(max_attempts, retry_delay), "queue": queue, "priority": priority, "owner": owner,
        "labels": read_labels(label or []), "replace": replace,
    }  # fmt: skip
    when = read_when(cron, every, at, rrule, tz)
    try:
        found = with_backend(
            context, lambda backend: backend.schedule(name, target, when, **options), creates=True
        )
    except ScheduleExists as problem:
        raise ScheduleExists(
            problem.fact, "choose another name, or change that one with --replace or `duetime schedule edit`"
        ) from None
    show_fields(found, as_json)


@command(commands, "list", "duetime schedule list --json", "duetime schedule list --paused --owner anna")
def list_schedules(
    context: typer.Context,
    text: TextFlag = None,
    paused: Annotated[
        bool | None,
        typer.Option("--paused/--active", help="Only paused, or only active ones.", show_default=False),
    ] = None,
    owner: OfOwnerFlag = None,
    label: OfLabelFlag = None,
    target: OfTargetFlag = None,
    queue: InQueueFlag = None,
    limit: LimitFlag = 100,
    after: Annotated[str | None, value_option("--after", "NAME", "Start after this name.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Schedules, by name."""
    wanted: dict[str, Any] = {
        "text": text,
        "paused": paused,
        "owner": owner,
        "target": target,
        "queue": queue,
        "label": read_label(label),
    }
    found = with_backend(context, lambda backend: backend.schedules(limit=limit, after=after, **wanted))
    show_list(found, as_json, ("NAME", "STATE", "TARGET", "WHEN", "NEXT FIRE", "RUNS"), _row, "no schedules")


def _row(one: ScheduleView) -> tuple[str, ...]:
    state, following = ("paused", "-") if one.paused else ("active", moment_text(one.next_fire_time))
    return one.name, state, target_text(one.target), one.description, following, str(one.runs)


@command(commands, "show", "duetime schedule show nightly")
def show_schedule(context: typer.Context, name: ScheduleArgument, as_json: JsonFlag = False) -> None:
    """One schedule with all its settings."""
    show_fields(with_backend(context, lambda backend: backend.get_schedule(name)), as_json)


@command(
    commands,
    "preview",
    "duetime schedule preview nightly --count 10",
    'duetime schedule preview --cron "30 2 * * *" --tz Europe/Berlin --after 2030-03-30T00:00:00Z',
)
def preview(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A stored schedule.", autocompletion=complete_schedule),
    ] = None,
    cron: CronFlag = None,
    tz: ZoneFlag = None,
    every: EveryFlag = None,
    rrule: RruleFlag = None,
    after: Annotated[
        str | None, value_option("--after", "ISO", "Only fires after this instant; now by default.")
    ] = None,
    count: Annotated[int, value_option("--count", "N", "How many fires to show.", min=1, max=1_000)] = 5,
    as_json: JsonFlag = False,
) -> None:
    """The next fires of a stored schedule or of an expression, with the effects of clock changes. An
    expression needs no store."""
    if (name is None) == ([cron, every, rrule] == [None, None, None]):
        raise typer.BadParameter("give the name of a schedule, or one of --cron, --every, --rrule")
    start = read_instant(after, "after")
    if name is None:
        when = read_when(cron, every, None, rrule, tz)
        found = PreviewView.of(preview_of(when, count, to_micros(start or now_here())))
    else:
        found = with_backend(
            context, lambda backend: backend.preview_schedule(name, count=count, after=start)
        )
    show(found, as_json, _show_preview)


def _show_preview(found: PreviewView) -> None:
    """Fires in the schedule's zone; the machine's own only if it differs, and notes only if there are any."""
    say(found.words or "")
    now = now_here()
    rows = [
        [_own_time(fire), local(fire.at), relative(fire.at, now), fire.note or ""] for fire in found.fires
    ]
    columns = ["FIRES AT", "LOCAL TIME", "FROM NOW", "NOTE"]
    needed = [True, any(row[0] != row[1] for row in rows), True, any(row[3] for row in rows)]
    kept = [number for number, wanted in enumerate(needed) if wanted]
    show_table(
        [columns[number] for number in kept],
        [[row[number] for number in kept] for row in rows],
        empty="no upcoming fires",
    )
    for warning in found.warnings:
        say(f"note: {warning}")


def _own_time(fire: FireView) -> str:
    return local(fire.at) if fire.local is None else fire.local.isoformat(sep=" ", timespec="seconds")


commands.registered_commands += schedule_edit.commands.registered_commands


@command(
    commands,
    "pause",
    "duetime schedule pause nightly --note 'month end'",
    "duetime schedule pause --all --owner anna --dry-run",
)
def pause(
    context: typer.Context,
    selection: Chosen,
    names: Names = None,
    note: Annotated[
        str | None, value_option("--note", "TEXT", "The reason; shown with the schedule.")
    ] = None,
) -> None:
    """Stop firing until resumed, by name or with --all. Planned jobs that have not started are withdrawn."""
    _apply(
        context,
        selection,
        names,
        "pause",
        "paused",
        lambda backend, name: backend.pause(name, note),
        _state,
        note=note,
    )


@command(commands, "resume", "duetime schedule resume nightly", "duetime schedule resume --all --owner anna")
def resume(context: typer.Context, selection: Chosen, names: Names = None) -> None:
    """Fire again from now on, by name or with --all. Fires during the pause are not made up for."""
    _apply(context, selection, names, "resume", "resumed", lambda backend, name: backend.resume(name), _state)


@command(
    commands,
    "trigger",
    "duetime schedule trigger nightly",
    "duetime schedule trigger --all --label team=finance",
)
def trigger(context: typer.Context, selection: Chosen, names: Names = None) -> None:
    """Run one job now, in addition to the regular fires, and print its id. By name or with --all."""
    _apply(
        context, selection, names, "trigger", "triggered",
        lambda backend, name: backend.trigger(name),
        lambda _, job: str(job.id),
    )  # fmt: skip


@command(
    commands,
    "remove",
    "duetime schedule remove nightly --yes",
    "duetime schedule remove --all --text test- --dry-run",
)
def remove(context: typer.Context, selection: Chosen, names: Names = None) -> None:
    """Delete schedules, by name or with --all. Running jobs finish, and the history stays."""

    async def check(backend: Backend) -> None:
        for name in names or []:
            await backend.get_schedule(name)

    if names and not selection.yes and not selection.everything:
        with_backend(context, check)
        typer.confirm(
            f"Remove the schedule{'s' if len(names) > 1 else ''} {visible(', '.join(names))}?",
            abort=True,
            err=True,
        )
    _apply(
        context, selection, names, "remove", "removed",
        lambda backend, name: backend.remove(name),
        lambda name, _: f"{name} removed",
    )  # fmt: skip


def _apply(
    context: typer.Context,
    selection: Selection,
    names: list[str] | None,
    action: str,
    done: str,
    one: Any,
    line: Any,
    **more: Any,
) -> None:
    every = Action(
        "schedule",
        done,
        one,
        line,
        lambda backend, filters: backend.bulk_schedules(action, **filters, **more),
    )
    every.apply(context, selection, names, "names")


def _state(_: str, found: ScheduleView) -> str:
    return f"{found.name} is " + (
        "paused" if found.paused else f"active; next fire: {moment_text(found.next_fire_time, 'none')}"
    )

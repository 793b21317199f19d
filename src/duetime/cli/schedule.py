"""`duetime schedule`: declare, look at, stop and start recurring jobs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.choice import OF_SCHEDULES, Choice, all_that_match, choosing, one_by_one
from duetime.cli.command import command, group
from duetime.cli.completion import complete_schedule, complete_task
from duetime.cli.flags import (
    CronFlag,
    EveryFlag,
    InQueueFlag,
    JsonFlag,
    LabelsFlag,
    LimitFlag,
    MethodFlag,
    OfLabelFlag,
    OfOwnerFlag,
    OfTargetFlag,
    OwnerFlag,
    PayloadFlag,
    PriorityFlag,
    QueueFlag,
    RruleFlag,
    TextFlag,
    ZoneFlag,
    words,
)
from duetime.cli.planning import add_planning
from duetime.cli.preview import add_preview

if TYPE_CHECKING:
    from duetime.cli.access import Access
    from duetime.remote.results import Schedule

schedule = group("Declare recurring jobs and see when they fire.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.", autocompletion=complete_schedule)]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Names of schedules.", autocompletion=complete_schedule)]
NoteFlag = Annotated[str | None, words("--note", "TEXT", "Why; shown with the schedule.")]


@command(
    schedule,
    "add",
    'duetime schedule add nightly report.build --cron "30 2 * * MON-FRI" --tz Europe/Berlin',
    "duetime schedule add pulse https://agent.example.org/health --method GET --every 30s --overlap skip",
    'duetime schedule add payday salary.pay --rrule "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0;BYSECOND=0"',
)
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")],
    target: Annotated[str, typer.Argument(metavar="TASK|URL", help="The task to run, or a URL to call.", autocompletion=complete_task)],
    cron: CronFlag = None,
    tz: ZoneFlag = None,
    every: EveryFlag = None,
    at: Annotated[str | None, words("--at", "ISO", "One instant.")] = None,
    rrule: RruleFlag = None,
    payload: PayloadFlag = None,
    method: MethodFlag = None,
    overlap: Annotated[str, words("--overlap", "POLICY", "While one runs: allow, skip, queue or cancel_previous.")] = "allow",
    missed: Annotated[str, words("--missed", "POLICY", "Of fires missed while no node ran: latest, all or skip.")] = "latest",
    within: Annotated[str | None, words("--within", "TIME", "How old a missed fire may be and still run.")] = None,
    jitter: Annotated[str, words("--jitter", "TIME", "Spread the jobs over this time.")] = "0s",
    start_at: Annotated[str | None, words("--start-at", "ISO", "No fire before this instant.")] = None,
    end_at: Annotated[str | None, words("--end-at", "ISO", "No fire after this instant.")] = None,
    max_runs: Annotated[int | None, words("--max-runs", "N", "Stop after so many fires.")] = None,
    queue: QueueFlag = None,
    priority: PriorityFlag = None,
    owner: OwnerFlag = None,
    label: LabelsFlag = None,
    replace: Annotated[bool, typer.Option("--replace", help="Change the schedule of this name, if there is one.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Declare a schedule. Declaring the same again changes nothing."""
    from duetime.cli.inputs import read_instant, read_labels, read_payload, read_target, read_when
    from duetime.cli.session import with_access
    from duetime.engine.checks import check_max_runs, check_overlap
    from duetime.model.schedule import Missed

    check_overlap(overlap)
    options: dict[str, Any] = {
        "payload": read_payload(payload), "overlap": overlap, "jitter": jitter, "max_runs": check_max_runs(max_runs), "queue": queue,
        "missed": Missed(missed, within=within),  # type: ignore[arg-type]  # Missed itself refuses what is no policy
        "start_at": read_instant(start_at, "start_at"), "end_at": read_instant(end_at, "end_at"), "priority": priority, "owner": owner,
        "labels": read_labels(label or []), "replace": replace,
    }  # fmt: skip
    when, wanted = read_when(cron, every, at, rrule, tz), read_target(target, method)
    show_schedule(with_access(context, lambda access: access.schedule(name, wanted, when, **options), creates=True), as_json)


@command(schedule, "list", "duetime schedule list --json", "duetime schedule list --paused --owner anna")
def list_schedules(
    context: typer.Context,
    text: TextFlag = None,
    paused: Annotated[bool | None, typer.Option("--paused/--active", help="Only those that are.", show_default=False)] = None,
    owner: OfOwnerFlag = None,
    label: OfLabelFlag = None,
    target: OfTargetFlag = None,
    queue: InQueueFlag = None,
    limit: LimitFlag = 100,
    after: Annotated[str | None, words("--after", "NAME", "Go on after this name.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Schedules by name."""
    from duetime.cli.conversion import plain
    from duetime.cli.inputs import read_label
    from duetime.cli.output import show_json, show_table
    from duetime.cli.session import with_access

    wanted: dict[str, Any] = {"text": text, "paused": paused, "owner": owner, "target": target, "queue": queue, "label": read_label(label)}
    found = with_access(context, lambda access: access.schedules(limit=limit, after=after, **wanted))
    if as_json:
        show_json(plain(found))
        return
    show_table(("NAME", "STATE", "TARGET", "WHEN", "NEXT FIRE", "RUNS"), [_row(one) for one in found], "no schedules")


@command(schedule, "show", "duetime schedule show nightly")
def show(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """One schedule, with all its policies."""
    from duetime.cli.session import with_access

    show_schedule(with_access(context, lambda access: access.get_schedule(name)), as_json)


@command(schedule, "pause", "duetime schedule pause nightly --note 'month end'", "duetime schedule pause --all --owner anna --dry-run")
@choosing(**OF_SCHEDULES)
def pause(context: typer.Context, choice: Choice, names: Names = None, note: NoteFlag = None) -> None:
    """No more fires until resumed; those planned and not started are withdrawn. By name, or all that match."""

    async def act(access: Access, name: str) -> str:
        return _state(await access.pause(name, note))

    _act_on(context, "pause", "paused", choice, names, act, note=note)


@command(schedule, "resume", "duetime schedule resume nightly", "duetime schedule resume --all --owner anna")
@choosing(**OF_SCHEDULES)
def resume(context: typer.Context, choice: Choice, names: Names = None) -> None:
    """Fire again from now on; what fell into the pause stays out. By name, or all that match."""

    async def act(access: Access, name: str) -> str:
        return _state(await access.resume(name))

    _act_on(context, "resume", "resumed", choice, names, act)


@command(schedule, "trigger", "duetime schedule trigger nightly", "duetime schedule trigger --all --label team=finance")
@choosing(**OF_SCHEDULES)
def trigger(context: typer.Context, choice: Choice, names: Names = None) -> None:
    """One job now, beside the schedule's own fires; prints its id. By name, or of all that match."""

    async def act(access: Access, name: str) -> str:
        return str((await access.trigger(name)).id)

    _act_on(context, "trigger", "triggered", choice, names, act)


@command(schedule, "remove", "duetime schedule remove nightly --yes", "duetime schedule remove --all --text test- --dry-run")
@choosing(**OF_SCHEDULES)
def remove(context: typer.Context, choice: Choice, names: Names = None) -> None:
    """No more fires. A running job finishes; history stays. By name, or all that match."""
    from duetime.cli.escape import visible
    from duetime.cli.session import with_access

    async def act(access: Access, name: str) -> str:
        await access.remove(name)
        return f"{name} removed"

    async def look(access: Access) -> None:
        for name in names or []:
            await access.get_schedule(name)

    if names and not choice.yes and not choice.everything:
        with_access(context, look)
        typer.confirm(f"Remove the schedule{'s' if len(names) > 1 else ''} {visible(', '.join(names))}?", abort=True, err=True)
    _act_on(context, "remove", "removed", choice, names, act)


add_preview(schedule)
add_planning(schedule)


def _act_on(context: typer.Context, action: str, verb: str, choice: Choice, names: list[str] | None, act: Any, **more: Any) -> None:
    choice.check(names, "names")
    if names:
        one_by_one(context, names, act)
    else:
        all_that_match(context, "schedule", verb, choice, lambda access: partial(access.bulk_schedules, action, **more))


def _state(found: Schedule) -> str:
    from duetime.cli.moments import full, now_here

    following = full(found.next_fire_time, now_here(), "none is left")
    return f"{found.name} is paused" if found.paused else f"{found.name} is active; next fire: {following}"


def show_schedule(found: Schedule, as_json: bool) -> None:
    from duetime.cli.conversion import plain
    from duetime.cli.output import Field, show_json, show_record
    from duetime.cli.shown import shown_fields

    record = plain(found)
    if as_json:
        show_json(record)
        return
    show_record([Field(name, value) for name, value in shown_fields(record) if value])


def _row(found: Schedule) -> tuple[str, ...]:
    from duetime.cli.moments import full, now_here
    from duetime.cli.shown import target_text

    following = "-" if found.paused else full(found.next_fire_time, now_here())
    state = "paused" if found.paused else "active"
    return found.name, state, target_text(found.target), found.description, following, str(found.runs)

"""`duetime schedule plan|edit|versions|restore|backfill`: the effects of an edit, the edit itself, its
history, and past fires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from duetime.cli.backend import Backend, with_backend
from duetime.cli.command import FlagGroup, command, standalone
from duetime.cli.completion import complete_task
from duetime.cli.format import (
    difference_text,
    local,
    moment_text,
    plural,
    say,
    show,
    show_fields,
    show_list,
    show_table,
    visible,
)
from duetime.cli.inputs import (
    CommandFlag,
    CronFlag,
    DeliveryFlag,
    DestinationFlag,
    EndAtFlag,
    EveryFlag,
    ExpiresFlag,
    FolderFlag,
    HeadersFlag,
    JitterFlag,
    JsonFlag,
    LimitFlag,
    MaxAttemptsFlag,
    MaxRunsFlag,
    MessageKeyFlag,
    MethodFlag,
    MissedFlag,
    MissedWaitingFlag,
    OnceFlag,
    OverlapFlag,
    OwnerFlag,
    PayloadFlag,
    PriorityFlag,
    QueueFlag,
    ReportFlag,
    RetryDelayFlag,
    RruleFlag,
    ScheduleArgument,
    ShellFlag,
    StartAtFlag,
    TimeoutFlag,
    WithinFlag,
    YesFlag,
    ZoneFlag,
    read_instant,
    read_labels,
    read_payload,
    read_target,
    read_when,
    retry_flags,
)
from duetime.cli.program import value_option
from duetime.cli.selection import ProgressLine
from duetime.engine.submit.schedules import LEFT_OUT
from duetime.engine.submit.validate import check_overlap
from duetime.errors import InvalidInput, InvalidWhen
from duetime.model.retry import Retry
from duetime.model.schedule import Missed, effective_missed
from duetime.model.views import Backfilled, PlanView, ScheduleView, VersionView
from duetime.model.when import Cron, RRule, When

commands = standalone()

MAX_FIRES_PER_CALL = 1_000
# The flags that give a target again, by the part of it that an edit names.
WHOLE_TARGET = {
    "cwd": "--command or --shell",
    "message_key": "--destination",
    "report": "--target URL or --destination",
}


def _require_target(replacement: str | None, **parts: object) -> None:
    """An edit replaces the target as a whole."""
    part = next((name for name, value in parts.items() if value), None)
    if replacement is None and part is not None:
        what, flag = WHOLE_TARGET.get(part, "--target URL"), part.replace("_", "-")
        raise InvalidInput(
            part, f"an edit replaces the whole target: give it again with {what}, next to --{flag}"
        )


def _changes(
    cron: CronFlag = None,
    tz: ZoneFlag = None,
    every: EveryFlag = None,
    at: OnceFlag = None,
    rrule: RruleFlag = None,
    target: Annotated[
        str | None,
        value_option("--target", "TASK|URL", "Another task, or a URL.", autocompletion=complete_task),
    ] = None,
    method: MethodFlag = None,
    header: HeadersFlag = None,
    command: CommandFlag = None,
    shell: ShellFlag = None,
    cwd: FolderFlag = None,
    destination: DestinationFlag = None,
    message_key: MessageKeyFlag = None,
    report: ReportFlag = False,
    payload: PayloadFlag = None,
    overlap: OverlapFlag = None,
    missed: MissedFlag = None,
    within: WithinFlag = None,
    missed_waiting: MissedWaitingFlag = False,
    jitter: JitterFlag = None,
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
    label: Annotated[
        list[str] | None,
        value_option("--label", "NAME=VALUE", "A label, in place of all present ones; may be repeated."),
    ] = None,
    unset: Annotated[
        list[str] | None,
        value_option(
            "--unset",
            "FIELD",
            "Remove a value, so that the default applies: end-at, timeout, labels, ...; may be repeated.",
            autocompletion=lambda incomplete: [one for one in _removable() if one.startswith(incomplete)],
        ),
    ] = None,
) -> dict[str, Any]:
    """Only what was given."""
    policy = {"policy": missed, "within": within, "waiting": missed_waiting or None}
    values = {
        "timeout": timeout,
        "retry": retry_flags(max_attempts, retry_delay) or None,
        "delivery": delivery,
        "expires": expires,
        "labels": read_labels(label or []),
        "overlap": overlap,
        "missed": {key: value for key, value in policy.items() if value is not None} or None,
        "jitter": jitter,
        "start_at": read_instant(start_at, "start_at"),
        "end_at": read_instant(end_at, "end_at"),
        "max_runs": max_runs,
        "queue": queue,
        "priority": priority,
        "owner": owner,
    }
    changes: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    if overlap is not None:
        check_overlap(overlap)
    if [cron, every, at, rrule] != [None] * 4:
        changes["when"] = read_when(cron, every, at, rrule, tz)
    elif tz is not None:
        changes["tz"] = tz
    words = (target, method, header, command, shell, cwd, destination, message_key, report)
    if any(words):
        whole = target or command or shell or destination
        _require_target(whole, method=method, header=header, cwd=cwd, message_key=message_key, report=report)
        changes["target"] = read_target(*words)
    if payload is not None:
        changes["payload"] = read_payload(payload)
    changes |= _defaults(unset or [], changes)
    if not changes:
        raise typer.BadParameter("nothing to change: give at least one flag, such as --cron or --priority")
    return changes


def _removable() -> list[str]:
    return [name.replace("_", "-") for name in LEFT_OUT]


def _defaults(unset: list[str], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The values of these fields in a schedule that was made without them."""
    names = [text.replace("-", "_") for text in unset]
    for text, name in zip(unset, names, strict=True):
        if name not in LEFT_OUT:
            raise InvalidInput("unset", f"{text[:40]!r} cannot be removed: use {', '.join(_removable())}")
        if name in changes:
            raise InvalidInput(name, "has a value and is removed: leave one of the two out")
    return {name: LEFT_OUT[name] for name in names}


Changes = Annotated[dict[str, Any], FlagGroup(_changes)]


async def _completed(backend: Backend, name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """A flag for a part of a rule or a policy keeps the other parts."""
    partial = {"tz", "retry", "missed"} & {name for name, value in changes.items() if value is not None}
    if not partial:
        return changes
    known, changes = await backend.get_schedule(name), dict(changes)
    if "tz" in partial:
        changes["when"] = _in_zone(known.when, changes.pop("tz"))
    if "retry" in partial:
        changes["retry"] = Retry.from_json({**(known.retry or {}), **changes["retry"]})
    if "missed" in partial:
        changes["missed"] = _edited_missed(known.missed, changes["missed"])
    return changes


def _edited_missed(known: Mapping[str, Any], flags: Mapping[str, Any]) -> Missed:
    """A new policy drops the settings of the old one that have no effect with it."""
    kept = effective_missed({**known, "policy": flags.get("policy", known.get("policy", "latest"))})
    return Missed(**{**kept, **flags})


def _in_zone(when: When, tz: str) -> When:
    match when:
        case Cron():
            return Cron(when.expr, tz)
        case RRule():
            return RRule(when.text, tz)
        case _:
            raise InvalidWhen("tz", "applies only to a schedule with --cron or --rrule: leave it out")


@command(
    commands,
    "plan",
    'duetime schedule plan nightly --cron "0 3 * * *" --tz Europe/Berlin',
    "duetime schedule plan pulse --every 1m --horizon 1h",
)
def plan(
    context: typer.Context,
    name: ScheduleArgument,
    changes: Changes,
    horizon: Annotated[
        str | None, value_option("--horizon", "TIME", "How far to look ahead; a week by default.")
    ] = None,
    count: Annotated[
        int, value_option("--count", "N", "How many fires of each kind to show.", min=1, max=1_000)
    ] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Show what an edit would change: fires added, moved and withdrawn. Use `schedule edit` with the same
    flags to apply it."""

    async def work(backend: Backend) -> PlanView:
        wanted = await _completed(backend, name, changes)
        return await backend.plan_schedule(name, wanted, horizon=horizon, count=count)

    show(with_backend(context, work), as_json, _show_plan)


def _show_plan(found: PlanView) -> None:
    fires, counts = found.fires, found.counts
    for change in found.diff:
        say(difference_text(change))
    if not found.diff:
        say("nothing would change")
    if found.words.before != found.words.after:
        say(f"was: {found.words.before}\nnow: {found.words.after}")
    names = ("kept", "added", "withdrawn", "moved")
    say(f"fires: {', '.join(f'{getattr(counts, name):,} {name}' for name in names)}")
    if found.jobs_withdrawn:
        say(f"pending jobs withdrawn: {found.jobs_withdrawn:,}")
    rows = [["added", moment_text(one), "-"] for one in fires.added] + [
        ["withdrawn", moment_text(one), "-"] for one in fires.withdrawn
    ]
    rows += [["moved", moment_text(one["from"]), moment_text(one["to"])] for one in fires.moved]
    if rows:
        show_table(("FIRE", "AT", "MOVES TO"), rows, "")
    for line in _notes(found):
        say(f"note: {line}")


def _notes(found: PlanView) -> Iterator[str]:
    yield from found.warnings
    if not found.complete:
        yield "there are too many fires to compare all of them; use a shorter --horizon"


@command(
    commands,
    "edit",
    'duetime schedule edit nightly --cron "0 3 * * *" --tz Europe/Berlin',
    "duetime schedule edit pulse --priority 9",
    "duetime schedule edit pulse --unset end-at --unset labels",
)
def edit(context: typer.Context, name: ScheduleArgument, changes: Changes, as_json: JsonFlag = False) -> None:
    """Change what the flags say and keep the rest. Use `schedule plan` with the same flags to see the
    effects first."""

    async def work(backend: Backend) -> ScheduleView:
        return await backend.edit_schedule(name, await _completed(backend, name, changes))

    show_fields(with_backend(context, work), as_json)


@command(
    commands, "versions", "duetime schedule versions nightly", "duetime schedule versions nightly --json"
)
def versions(
    context: typer.Context, name: ScheduleArgument, limit: LimitFlag = 20, as_json: JsonFlag = False
) -> None:
    """The changes of a schedule with time and author, newest first; also of a removed schedule."""
    found = with_backend(context, lambda backend: backend.schedule_versions(name, limit=limit))
    show_list(found, as_json, ("VERSION", "AT", "BY", "CHANGE", "WHAT"), _version_row, "no versions")


def _version_row(one: VersionView) -> tuple[str, ...]:
    return (
        str(one.version),
        moment_text(one.at),
        one.author or "-",
        one.change,
        "; ".join(map(difference_text, one.diff)) or "-",
    )


@command(commands, "restore", "duetime schedule restore nightly 3")
def restore(
    context: typer.Context,
    name: ScheduleArgument,
    version: Annotated[
        int, typer.Argument(metavar="VERSION", help="The number that `schedule versions` shows.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Bring back an earlier version of a schedule, as a new version."""
    show_fields(with_backend(context, lambda backend: backend.restore_schedule(name, version)), as_json)


@command(
    commands,
    "backfill",
    "duetime schedule backfill nightly --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z",
    "duetime schedule backfill nightly --from 2026-01-01T00:00:00Z --rate 10/1s --yes",
)
def backfill(
    context: typer.Context,
    name: ScheduleArgument,
    start: Annotated[str, value_option("--from", "ISO", "Start of the range.")],
    end: Annotated[
        str | None, value_option("--to", "ISO", "End of the range, not included; now by default.")
    ] = None,
    rate: Annotated[
        str | None, value_option("--rate", "N/TIME", "Make at most this many due per time: 10/1s.")
    ] = None,
    limit: Annotated[
        int | None, value_option("--limit", "N", "At most this many fires, oldest first.", min=1)
    ] = None,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Add jobs for the fires of a past range that have none. Running it again adds nothing twice."""
    first, last = read_instant(start, "from"), read_instant(end, "to")
    assert first is not None
    if not yes:
        until = "now" if last is None else local(last)
        typer.confirm(
            f"Add the missing jobs of {visible(name)} from {local(first)} to {until}?", abort=True, err=True
        )
    show(
        with_backend(context, lambda backend: _backfill(backend, name, first, last, rate, limit)),
        as_json,
        _show_backfilled,
    )


def _show_backfilled(done: Backfilled) -> None:
    say(f"{plural(done.added, 'job')} added; fires that had a job already: {done.existing:,}")
    if done.next_from is not None:
        say(f"more is left: continue with --from {done.next_from.isoformat()}")


async def _backfill(
    backend: Backend, name: str, first: datetime, last: datetime | None, rate: str | None, limit: int | None
) -> Backfilled:
    """Repeat the call, which handles a bounded number, until the end of the range or the limit."""
    added = existing = 0
    with ProgressLine("fire") as line:
        while True:
            left = None if limit is None else min(limit - added - existing, MAX_FIRES_PER_CALL)
            part = await backend.backfill(name, first, last, rate=rate, limit=left)
            added, existing = added + part.added, existing + part.existing
            if part.next_from is None or (limit is not None and added + existing >= limit):
                return Backfilled(added=added, existing=existing, next_from=part.next_from)
            first = part.next_from
            line.show(added + existing)

"""`duetime schedule plan|edit|versions|restore|backfill`: what an edit would change, what was changed, the way back, and past fires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command
from duetime.cli.completion import complete_schedule, complete_task
from duetime.cli.flags import (
    CronFlag,
    EveryFlag,
    JsonFlag,
    LimitFlag,
    MethodFlag,
    OwnerFlag,
    PayloadFlag,
    PriorityFlag,
    QueueFlag,
    RruleFlag,
    YesFlag,
    ZoneFlag,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.cli.access import Access
    from duetime.remote.results import Backfilled, Plan, Version

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.", autocompletion=complete_schedule)]
NewTarget = Annotated[str | None, words("--target", "TASK|URL", "Another task, or a URL.", autocompletion=complete_task)]
NewAt = Annotated[str | None, words("--at", "ISO", "One instant.")]
NewOverlap = Annotated[str | None, words("--overlap", "POLICY", "While one runs: allow, skip, queue or cancel_previous.")]
NewJitter = Annotated[str | None, words("--jitter", "TIME", "Spread the jobs over this time.")]
NewRuns = Annotated[int | None, words("--max-runs", "N", "Stop after so many fires.")]
HorizonFlag = Annotated[str | None, words("--horizon", "TIME", "How far to look ahead; a week unless given.")]


def add_planning(parent: typer.Typer) -> None:
    command(
        parent,
        "plan",
        'duetime schedule plan nightly --cron "0 3 * * *" --tz Europe/Berlin',
        "duetime schedule plan pulse --every 1m --horizon 1h",
    )(plan)
    command(
        parent, "edit", 'duetime schedule edit nightly --cron "0 3 * * *" --tz Europe/Berlin', "duetime schedule edit pulse --priority 9"
    )(edit)
    command(parent, "versions", "duetime schedule versions nightly", "duetime schedule versions nightly --json")(versions)
    command(parent, "restore", "duetime schedule restore nightly 3")(restore)
    command(
        parent,
        "backfill",
        "duetime schedule backfill nightly --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z",
        "duetime schedule backfill nightly --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --rate 10/1s --yes",
    )(backfill)


def plan(
    context: typer.Context,
    name: Name,
    cron: CronFlag = None,
    tz: ZoneFlag = None,
    every: EveryFlag = None,
    at: NewAt = None,
    rrule: RruleFlag = None,
    target: NewTarget = None,
    method: MethodFlag = None,
    payload: PayloadFlag = None,
    overlap: NewOverlap = None,
    jitter: NewJitter = None,
    max_runs: NewRuns = None,
    queue: QueueFlag = None,
    priority: PriorityFlag = None,
    owner: OwnerFlag = None,
    horizon: HorizonFlag = None,
    count: Annotated[int, words("--count", "N", "How many fires of each kind to show.", min=1, max=1_000)] = 20,
    as_json: JsonFlag = False,
) -> None:
    """What an edit would change: fires added, moved and withdrawn. Nothing is changed; `schedule edit` with the same words does it."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import show_json
    from duetime.cli.session import with_access

    changes = _changes(
        [cron, every, at, rrule], tz, target, method, payload, overlap=overlap, jitter=jitter, max_runs=max_runs, queue=queue,
        priority=priority, owner=owner,
    )  # fmt: skip
    found = with_access(context, lambda access: access.plan_schedule(name, changes, horizon=horizon, count=count))
    if as_json:
        show_json(plain(found))
    else:
        _show_plan(found)


def edit(
    context: typer.Context,
    name: Name,
    cron: CronFlag = None,
    tz: ZoneFlag = None,
    every: EveryFlag = None,
    at: NewAt = None,
    rrule: RruleFlag = None,
    target: NewTarget = None,
    method: MethodFlag = None,
    payload: PayloadFlag = None,
    overlap: NewOverlap = None,
    jitter: NewJitter = None,
    max_runs: NewRuns = None,
    queue: QueueFlag = None,
    priority: PriorityFlag = None,
    owner: OwnerFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Change what is given and leave the rest. `schedule plan` with the same words tells before what that means."""
    from duetime.cli.schedule import show_schedule
    from duetime.cli.session import with_access

    changes = _changes(
        [cron, every, at, rrule], tz, target, method, payload, overlap=overlap, jitter=jitter, max_runs=max_runs, queue=queue,
        priority=priority, owner=owner,
    )  # fmt: skip
    show_schedule(with_access(context, lambda access: access.edit_schedule(name, changes)), as_json)


def versions(context: typer.Context, name: Name, limit: LimitFlag = 20, as_json: JsonFlag = False) -> None:
    """What was changed, when and by whom, newest first; also of a schedule that was removed."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import show_json, show_table
    from duetime.cli.session import with_access

    found = with_access(context, lambda access: access.schedule_versions(name, limit=limit))
    if as_json:
        show_json(plain(found))
        return
    show_table(("VERSION", "AT", "BY", "CHANGE", "WHAT"), [_version_row(one) for one in found], "no versions")


def restore(
    context: typer.Context,
    name: Name,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="Its number, as `schedule versions` shows it.")],
    as_json: JsonFlag = False,
) -> None:
    """Make a schedule what it was at an earlier version; that is a version of its own."""
    from duetime.cli.schedule import show_schedule
    from duetime.cli.session import with_access

    show_schedule(with_access(context, lambda access: access.restore_schedule(name, version)), as_json)


def backfill(
    context: typer.Context,
    name: Name,
    start: Annotated[str, words("--from", "ISO", "The first instant of the range.")],
    end: Annotated[str | None, words("--to", "ISO", "The end of the range, not included; now unless given.")] = None,
    rate: Annotated[str | None, words("--rate", "N/TIME", "Have so many fall due in any such time: 10/1s.")] = None,
    limit: Annotated[int | None, words("--limit", "N", "At most so many fires, oldest first.", min=1)] = None,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Jobs for the fires of a past range that have none. Repeating it adds nothing: what was broken off can simply be run again."""
    from duetime.cli.conversion import plain
    from duetime.cli.escape import visible
    from duetime.cli.inputs import read_instant
    from duetime.cli.moments import local
    from duetime.cli.output import say, show_json
    from duetime.cli.session import with_access

    first, last = read_instant(start, "from"), read_instant(end, "to")
    assert first is not None
    if not yes:
        until = "now" if last is None else local(last)
        typer.confirm(f"Add the jobs {visible(name)} has missed from {local(first)} to {until}?", abort=True, err=True)
    done = with_access(context, lambda access: _fill(access, name, first, last, rate, limit))
    if as_json:
        show_json(plain(done))
        return
    say(f"{done.added:,} job{'' if done.added == 1 else 's'} added; fires that had theirs already: {done.existing:,}")
    if done.next_from is not None:
        say(f"more is left: go on with --from {done.next_from.isoformat()}")


async def _fill(access: Access, name: str, first: Any, last: Any, rate: str | None, limit: int | None) -> Backfilled:
    """A bounded part a call, until the range or the limit is reached."""
    from duetime.cli.choice import Ticker
    from duetime.remote.results import Backfilled, Bulk

    added = existing = 0
    with Ticker("fire") as ticker:
        while True:
            left = None if limit is None else limit - added - existing
            part = await access.backfill(name, first, last, rate=rate, limit=None if left is None else min(left, 1_000))
            added, existing, first = added + part.added, existing + part.existing, part.next_from
            seen = added + existing
            ticker.tell(Bulk(matched=seen, done=seen, next_cursor=None if first is None else "more"))
            if first is None or (limit is not None and seen >= limit):
                return Backfilled(added=added, existing=existing, next_from=first)


def _changes(
    whens: list[str | None], tz: str | None, target: str | None, method: str | None, payload: str | None, **plain: Any
) -> dict[str, Any]:
    """What the edit says, and nothing else."""
    from duetime.cli.inputs import read_payload, read_target, read_when
    from duetime.engine.checks import check_overlap

    changes = {name: value for name, value in plain.items() if value is not None}
    if "overlap" in changes:
        check_overlap(changes["overlap"])
    if tz is not None or whens != [None] * 4:
        changes["when"] = read_when(whens[0], whens[1], whens[2], whens[3], tz)
    if target is not None or method is not None:
        changes["target"] = read_target(target or "", method)
    if payload is not None:
        changes["payload"] = read_payload(payload)
    if not changes:
        raise typer.BadParameter("give at least one thing to change, such as --cron or --priority")
    return changes


def _show_plan(found: Plan) -> None:
    from duetime.cli.output import say, show_table

    fires = found.fires
    for change in found.diff:
        say(f"{change.field}: {_value(change.before)} -> {_value(change.after)}")
    if not found.diff:
        say("nothing would change")
    if found.words.before != found.words.after:
        say(f"was: {found.words.before}\nnow: {found.words.after}")
    moved = [(one["from"], one["to"]) for one in fires.moved]
    rows = [*(("added", one) for one in fires.added), *(("withdrawn", one) for one in fires.withdrawn)]
    table = [[kind, _moment(one), "-"] for kind, one in rows] + [["moved", _moment(old), _moment(new)] for old, new in moved]
    counts = found.counts
    say(f"fires: {counts.kept:,} kept, {counts.added:,} added, {counts.withdrawn:,} withdrawn, {counts.moved:,} moved")
    if found.jobs_withdrawn:
        say(f"waiting jobs withdrawn: {found.jobs_withdrawn:,}")
    if table:
        show_table(("FIRE", "AT", "MOVES TO"), table, "")
    for line in _caveats(found):
        say(line)


def _caveats(found: Plan) -> Iterator[str]:
    yield from (f"note: {warning}" for warning in found.warnings)
    if not found.complete:
        yield "note: there are more fires than were looked at; a shorter --horizon shows all of them"


def _version_row(one: Version) -> tuple[str, ...]:
    from duetime.cli.moments import full, now_here

    what = "; ".join(f"{change.field}: {_value(change.before)} -> {_value(change.after)}" for change in one.diff)
    return str(one.version), full(one.at, now_here()), one.author or "-", one.change, what or "-"


def _value(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _moment(moment: Any) -> str:
    from duetime.cli.moments import full, now_here

    return full(moment, now_here())

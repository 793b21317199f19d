"""`duetime events` and `duetime stats`: what happens, and what happened lately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command
from duetime.cli.flags import JsonFlag, words

if TYPE_CHECKING:
    from duetime.cli.access import Access
    from duetime.remote.results import Event, Stats

KINDS = ("job", "schedule", "node", "queue")


def add_watching(program: typer.Typer) -> None:
    command(program, "events", "duetime events", "duetime events --types job,node --json | head -5")(events)
    command(program, "stats", "duetime stats", "duetime stats --since 24h --step 1h --json")(stats)


def _complete_types(incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{kind}" for kind in KINDS if kind.startswith(last)]


def events(
    context: typer.Context,
    types: Annotated[
        str | None, words("--types", "NAMES", "Only these: job, schedule, node, queue.", autocompletion=_complete_types)
    ] = None,
    after: Annotated[int | None, words("--after", "ID", "Begin after the event with this id; else with what happens now.", min=0)] = None,
    count: Annotated[int | None, words("--count", "N", "Stop after so many.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, one event a line.")] = False,
) -> None:
    """Follow what happens to jobs, schedules, nodes and queues, until Ctrl-C."""
    from duetime.cli.session import with_access

    wanted = None if types is None else [kind.strip() for kind in types.split(",")]

    async def work(access: Access) -> None:
        left = count
        async for event in access.events(wanted, after=after):
            _write(event, as_json)
            left = None if left is None else left - 1
            if left == 0:
                return

    with_access(context, work)


def _write(event: Event, as_json: bool) -> None:
    import json
    import sys

    from duetime.cli.conversion import plain
    from duetime.cli.output import say

    if as_json:
        typer.echo(json.dumps(plain(event)))
    else:
        say(_line(event))
    sys.stdout.flush()  # whoever reads along must not wait for a buffer


def _line(event: Event) -> str:
    from datetime import datetime

    from duetime.cli.moments import local, now_here

    data = dict(event.data)
    at = datetime.fromisoformat(data.pop("at")) if isinstance(data.get("at"), str) else now_here()
    head = [local(at), event.kind.ljust(8), str(data.pop("action", "")).ljust(10), str(data.pop("id", ""))]
    return " ".join([*head, *(f"{name}={value}" for name, value in data.items() if value is not None)]).rstrip()


def stats(
    context: typer.Context,
    since: Annotated[str | None, words("--since", "TIME", "How far back; an hour unless given.")] = None,
    step: Annotated[str | None, words("--step", "TIME", "How long one line stands for.")] = "5m",
    as_json: JsonFlag = False,
) -> None:
    """What waits and runs now, what was done lately, what fails, what is late, and what comes next."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import show_json
    from duetime.cli.session import with_access

    found = with_access(context, lambda access: access.stats(since, step))
    if as_json:
        show_json(plain(found))
    else:
        _show(found)


def _show(found: Stats) -> None:
    from duetime.cli.moments import full, local
    from duetime.cli.output import say, show_table

    live = found.live
    dead = f"{live.dead:,} dead letter{'' if live.dead == 1 else 's'}"
    say(f"now      {live.pending:,} waiting, {live.due:,} of them due; {live.running:,} running; {dead}")
    say(f"leader   {'none' if found.leader is None else f'node {found.leader}'}\n")
    columns = ("FROM", "SUCCEEDED", "FAILED", "RETRIED", "DEAD", "CANCELLED", "SKIPPED", "LATE P50", "LATE P99", "TOOK P50")
    names = ("succeeded", "failed", "retried", "dead", "cancelled", "skipped")
    busy = [point for point in found.series if any(getattr(point, name) for name in names)]
    lapses = ("lateness_p50_ms", "lateness_p99_ms", "duration_p50_ms")
    rows = [
        [local(one.at), *(f"{getattr(one, name):,}" for name in names), *(_lapse(getattr(one, name)) for name in lapses)] for one in busy
    ]
    show_table(columns, rows, "nothing was done in this time")
    if found.failing:
        say()
        show_table(
            ("FAILING", "TIMES", "LAST ERROR"), [[one.target, f"{one.failed:,}", one.last_error or "-"] for one in found.failing], ""
        )
    if found.late:
        say()
        show_table(("LATE", "TARGET", "QUEUE"), [_late(one) for one in found.late], "")
    if found.next:
        say()
        show_table(("NEXT", "SCHEDULE"), [[full(one.at, found.now), one.name] for one in found.next], "")


def _late(one: dict[str, Any]) -> list[str]:
    from duetime.cli.shown import target_text

    return [str(one.get("id")), target_text(one.get("target", {})), str(one.get("queue"))]


def _lapse(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "-"
    return f"{milliseconds / 1_000:.1f} s" if milliseconds >= 1_000 else f"{milliseconds:.0f} ms" if milliseconds >= 1 else "< 1 ms"

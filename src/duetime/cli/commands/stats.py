"""`duetime stats`: current load, and what happened lately."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime.cli.backend import with_backend
from duetime.cli.command import command, standalone
from duetime.cli.format import local, moment_text, plural, say, show, show_table, target_text
from duetime.cli.inputs import JsonFlag
from duetime.cli.program import value_option
from duetime.model.views import Stats, StatsPoint

commands = standalone()

COUNTS = ("succeeded", "failed", "retried", "dead", "cancelled", "skipped")
TIMES = ("lateness_p50_ms", "lateness_p99_ms", "duration_p50_ms")


@command(commands, "stats", "duetime stats", "duetime stats --since 24h --step 1h --json")
def stats(
    context: typer.Context,
    since: Annotated[str | None, value_option("--since", "TIME", "How far back; an hour by default.")] = None,
    step: Annotated[str | None, value_option("--step", "TIME", "The time that one line covers.")] = "5m",
    as_json: JsonFlag = False,
) -> None:
    """Jobs waiting and running now, recent results, what fails, what is late, and the next fires."""
    show(with_backend(context, lambda backend: backend.stats(since, step)), as_json, _show_stats)


def _show_stats(found: Stats) -> None:
    live = found.live
    waiting = f"{live.pending:,} waiting, {live.due:,} of them due"
    say(f"now      {waiting}; {live.running:,} running; {plural(live.dead, 'dead letter')}")
    say(f"leader   {'none' if found.leader is None else f'node {found.leader}'}")
    if found.read_store is not None:
        replica = found.read_store
        say(f"read     {replica.remark or f'from the read replica, {_time(replica.lag_ms)} behind'}")
    say()
    columns = (
        "FROM",
        "SUCCEEDED",
        "FAILED",
        "RETRIED",
        "DEAD",
        "CANCELLED",
        "SKIPPED",
        "LATE P50",
        "LATE P99",
        "TOOK P50",
    )
    busy = [point for point in found.series if any(getattr(point, name) for name in COUNTS)]
    show_table(columns, [_point_row(point) for point in busy], "no job ended in this time")
    failing = [[one.target, f"{one.failed:,}", one.last_error or "-"] for one in found.failing]
    late = [[str(one.id), target_text(one.target), one.queue] for one in found.late]
    following = [[moment_text(one.at, now=found.now), one.name] for one in found.next]
    tables = {
        ("FAILING", "TIMES", "LAST ERROR"): failing,
        ("LATE", "TARGET", "QUEUE"): late,
        ("NEXT", "SCHEDULE"): following,
    }
    for header, rows in tables.items():
        if rows:
            say()
            show_table(header, rows, "")


def _point_row(point: StatsPoint) -> list[str]:
    return [
        local(point.at),
        *(f"{getattr(point, name):,}" for name in COUNTS),
        *(_time(getattr(point, name)) for name in TIMES),
    ]


def _time(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "-"
    return (
        f"{milliseconds / 1_000:.1f} s"
        if milliseconds >= 1_000
        else f"{milliseconds:.0f} ms"
        if milliseconds >= 1
        else "< 1 ms"
    )

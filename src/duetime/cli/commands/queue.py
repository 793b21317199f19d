"""`duetime queue`: the load of each queue; pause, resume and limit queues."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime.cli.backend import with_backend
from duetime.cli.command import command, group
from duetime.cli.completion import complete_queue
from duetime.cli.format import say, show, show_list
from duetime.cli.inputs import JsonFlag, LimitFlag
from duetime.cli.program import value_option
from duetime.model.views import QueueView

commands = group("List queues; pause, resume and limit them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The queue's name.", autocompletion=complete_queue)]


@command(commands, "list", "duetime queue list --json")
def list_queues(
    context: typer.Context,
    limit: LimitFlag = 1_000,
    after: Annotated[str | None, value_option("--after", "NAME", "Start after this name.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Queues that have had a job or a setting, by name."""
    columns = ("NAME", "STATE", "PENDING", "DUE", "RUNNING", "MAX RUNNING", "RATE", "NOTE")
    found = with_backend(context, lambda backend: backend.queues(limit=limit, after=after))
    show_list(found, as_json, columns, _row, "no queues")


def _row(one: QueueView) -> tuple[str, ...]:
    state, limit = (
        "paused" if one.paused else "active",
        "-" if one.max_running is None else str(one.max_running),
    )
    return (
        one.name,
        state,
        str(one.pending),
        str(one.due),
        str(one.running),
        limit,
        one.rate or "-",
        one.pause_note or "-",
    )


@command(commands, "pause", "duetime queue pause mail --note 'mail server migration'")
def pause(
    context: typer.Context,
    name: Name,
    note: Annotated[
        str | None, value_option("--note", "TEXT", "The reason; shown with the queue and its waiting jobs.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Start no more jobs of this queue on any node. Running jobs finish; new jobs wait."""
    show(with_backend(context, lambda backend: backend.pause_queue(name, note)), as_json, _show_state)


@command(commands, "resume", "duetime queue resume mail")
def resume(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Start the jobs of a paused queue again."""
    show(with_backend(context, lambda backend: backend.resume_queue(name)), as_json, _show_state)


@command(
    commands,
    "limit",
    "duetime queue limit mail --max-running 5 --rate 100/1m",
    "duetime queue limit mail --none",
)
def limit(
    context: typer.Context,
    name: Name,
    max_running: Annotated[
        int | None, value_option("--max-running", "N", "Run at most this many of its jobs at the same time.")
    ] = None,
    rate: Annotated[
        str | None, value_option("--rate", "N/TIME", "Start at most this many of its jobs per time: 100/1m.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Remove the limits.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Limit this queue across all nodes. Replaces earlier limits; anything you leave out is unlimited."""
    if none == (max_running is not None or rate is not None):
        raise typer.BadParameter("give --max-running, --rate or both, or --none")
    show(
        with_backend(context, lambda backend: backend.limit_queue(name, max_running, rate)),
        as_json,
        _show_state,
    )


def _show_state(found: QueueView) -> None:
    state = f"paused; {found.running} still running, {found.pending} waiting" if found.paused else "active"
    running = "" if found.max_running is None else f"at most {found.max_running} running"
    rate = "" if found.rate is None else f"at most {found.rate} starts"
    say(f"{found.name} is {state}; {' and '.join(filter(None, [running, rate])) or 'no limit'}")

"""`duetime events`: what happens, as it happens."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Annotated

import typer

from duetime.cli.backend import Backend, with_backend
from duetime.cli.command import command, standalone
from duetime.cli.format import local, now_here, say
from duetime.cli.program import value_option
from duetime.model.views import EventView, to_json

commands = standalone()

KINDS = ("job", "schedule", "node", "queue")
RESET = "reset"  # what a reader knows may be out of date


def _complete_types(incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{kind}" for kind in KINDS if kind.startswith(last)]


@command(commands, "events", "duetime events", "duetime events --types job,node --json | head -5")
def events(
    context: typer.Context,
    types: Annotated[
        str | None,
        value_option(
            "--types", "NAMES", f"Only these types: {', '.join(KINDS)}.", autocompletion=_complete_types
        ),
    ] = None,
    after: Annotated[
        int | None,
        value_option(
            "--after", "ID", "Start after the event with this id; with new events by default.", min=0
        ),
    ] = None,
    count: Annotated[int | None, value_option("--count", "N", "Stop after this many.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, one event per line.")] = False,
) -> None:
    """Follow what happens to jobs, schedules, nodes and queues, until Ctrl-C."""
    wanted = None if types is None else [kind.strip() for kind in types.split(",")]

    async def work(backend: Backend) -> None:
        seen, begun = 0, after is not None
        async for event in backend.events(wanted, after=after):
            # A process that learns of its first subscriber writes a reset. This one had seen nothing before.
            begun = begun or event.kind != RESET
            if not begun:
                continue
            if as_json:
                typer.echo(json.dumps(to_json(event)))
            else:
                say(_line(event))
            sys.stdout.flush()  # a reader of the pipe gets each event when it happens
            seen += 1
            if seen == count:
                return

    with_backend(context, work)


def _line(event: EventView) -> str:
    data = dict(event.data)
    at = datetime.fromisoformat(data.pop("at")) if isinstance(data.get("at"), str) else now_here()
    head = [local(at), event.kind.ljust(8), str(data.pop("action", "")).ljust(10), str(data.pop("id", ""))]
    return " ".join(
        [*head, *(f"{name}={value}" for name, value in data.items() if value is not None)]
    ).rstrip()

"""`duetime broker`: the broker between the store and the workers."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime.cli.backend import with_backend
from duetime.cli.command import command, standalone
from duetime.cli.format import say, show, show_table
from duetime.cli.inputs import JsonFlag, setting_flags
from duetime.cli.program import REFUSED
from duetime.config import Settings
from duetime.model.views import BrokerView

commands = standalone()


@command(
    commands,
    "broker",
    "duetime broker --queue amqp://broker.example.org",
    "duetime --server https://duetime.example.org broker --json",
)
def broker(
    context: typer.Context, settings: Annotated[Settings, setting_flags("queue")], as_json: JsonFlag = False
) -> None:
    """Whether the broker answers, and how many messages it holds for each queue and priority; fails if it is
    down. A message names one or more due jobs."""
    found = with_backend(context, lambda backend: backend.broker())
    show(found, as_json, _show_broker)
    if found.address is not None and not found.up:
        raise typer.Exit(REFUSED)


def _show_broker(found: BrokerView) -> None:
    if found.address is None:
        say("no broker: give its address with --queue, or ask a service that has one with --server")
        return
    say(f"{found.address}  {found.remark or 'answers'}")
    rows = [[one.queue, str(one.priority), f"{one.messages:,}"] for one in found.depth]
    if found.up:
        show_table(("QUEUE", "PRIORITY", "MESSAGES"), rows, "no messages")

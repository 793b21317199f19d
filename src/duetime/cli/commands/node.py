"""`duetime node`: the processes that plan and work."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime.cli.backend import with_backend
from duetime.cli.command import command, group
from duetime.cli.format import moment_text, show_list
from duetime.cli.inputs import JsonFlag
from duetime.model.views import NodeView

commands = group("List the nodes that plan and work.")


@command(commands, "list", "duetime node list --json")
def list_nodes(
    context: typer.Context,
    every: Annotated[
        bool, typer.Option("--all", help="Also nodes that left or died and are still in the history.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Nodes that are alive, and those that are gone whose jobs were not yet given back."""
    known = with_backend(context, lambda backend: backend.nodes())
    found = [one for one in known if every or one.state not in ("dead", "left") or one.running]
    columns = (
        "ID",
        "NAME",
        "STATE",
        "ROLES",
        "RUNNING",
        "STARTED",
        "LEASE UNTIL",
        "VERSION",
        "BROKER",
        "LACKS",
    )
    show_list(found, as_json, columns, _row, "no nodes: start one with `duetime serve`")


def _row(one: NodeView) -> tuple[str, ...]:
    times = moment_text(one.started_at), moment_text(one.lease_until)
    roles, broker = ", ".join(one.roles), one.broker or "-"
    fields = str(one.id), one.name, one.state, roles, str(one.running), *times, one.version, broker
    return *fields, ", ".join(one.lacks) or "-"

"""`duetime node`: the processes of the fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duetime.cli.command import command, group
from duetime.cli.flags import JsonFlag

if TYPE_CHECKING:
    from duetime.remote.results import Node

node = group("See the processes that plan and work.")


@command(node, "list", "duetime node list --json")
def list_nodes(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Dead ones too, until they are forgotten with their history.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Nodes that are alive, and dead ones whose jobs have not been given back yet."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import show_json, show_table
    from duetime.cli.session import with_access

    known = with_access(context, lambda access: access.nodes())
    found = [one for one in known if every or one.state != "dead" or one.running]
    if as_json:
        show_json(plain(found))
        return
    columns = ("ID", "NAME", "STATE", "ROLES", "RUNNING", "STARTED", "LEASE UNTIL", "VERSION")
    show_table(columns, [_row(one) for one in found], "no nodes: `duetime serve` starts one")


def _row(one: Node) -> tuple[str, ...]:
    from duetime.cli.moments import full, now_here

    times = [full(moment, now_here()) for moment in (one.started_at, one.lease_until)]
    return str(one.id), one.name, one.state, ", ".join(one.roles), str(one.running), *times, one.version

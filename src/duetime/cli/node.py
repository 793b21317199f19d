"""`duetime node`: the processes of the fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duetime.cli.command import command, group
from duetime.cli.flags import JsonFlag

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.model.instant import Micros
    from duetime.model.lease import Node

node = group("See the processes that plan and work.")


@command(node, "list", "duetime node list --json")
def list_nodes(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Dead ones too, until they are forgotten with their history.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Nodes that are alive, and dead ones whose jobs have not been given back yet."""
    from duetime.cli.output import show_json, show_table
    from duetime.cli.records import node_record
    from duetime.cli.session import with_app

    async def work(app: App) -> tuple[list[Node], Micros]:
        known = await app.store.nodes()
        return [one for one in known if every or not one.dead or one.running], await app.store.time()

    nodes, now = with_app(context, work)
    if as_json:
        show_json([node_record(one, now) for one in nodes])
        return
    columns = ("ID", "NAME", "STATE", "ROLES", "RUNNING", "STARTED", "LEASE UNTIL", "VERSION")
    show_table(columns, [_row(one, now) for one in nodes], "no nodes: `duetime serve` starts one")


def _row(one: Node, now: Micros) -> tuple[str, ...]:
    from duetime.cli.moments import full
    from duetime.cli.records import node_state
    from duetime.model.instant import to_datetime

    times = [full(to_datetime(moment), to_datetime(now)) for moment in (one.started_at, one.lease_until)]
    return str(one.id), one.name, node_state(one, now), ", ".join(one.roles), str(one.running), *times, one.version

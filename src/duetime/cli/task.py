"""`duetime task`: the names a job can be submitted under."""

from __future__ import annotations

import typer

from duetime.cli.command import command, group
from duetime.cli.flags import JsonFlag

task = group("See which tasks there are.")


@command(task, "list", "duetime task list", "duetime --app shop.tasks:app task list --json")
def list_tasks(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Tasks that a living worker runs, or that --app has, by name."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import show_json, show_table
    from duetime.cli.session import with_access

    found = with_access(context, lambda access: access.known_tasks())
    if as_json:
        show_json(plain(found))
        return
    rows = [(one.name, one.queue or "-", one.doc or "-") for one in found]
    show_table(("NAME", "QUEUE", "WHAT IT DOES"), rows, "no tasks: `duetime --app module:app serve` runs yours")

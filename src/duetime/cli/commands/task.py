"""`duetime task`: the tasks that jobs can be submitted to."""

from __future__ import annotations

import typer

from duetime.cli.backend import with_backend
from duetime.cli.command import command, group
from duetime.cli.format import show_list
from duetime.cli.inputs import JsonFlag
from duetime.model.views import TaskView

commands = group("List the tasks that jobs can be submitted to.")


@command(commands, "list", "duetime task list", "duetime --app shop.tasks:app task list --json")
def list_tasks(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Tasks of running workers and of --app, by name."""
    found = with_backend(context, lambda backend: backend.known_tasks())
    show_list(
        found,
        as_json,
        ("NAME", "QUEUE", "WHAT IT DOES"),
        _row,
        "no tasks: run yours with `duetime --app module:app serve`",
    )


def _row(one: TaskView) -> tuple[str, ...]:
    return one.name, one.queue or "-", one.doc or "-"

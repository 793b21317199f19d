"""`duetime export`: the stored schedules as a file that `duetime apply` reads."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime.cli.backend import Backend, with_backend
from duetime.cli.command import command, standalone
from duetime.cli.documents.changes import stored_schedules
from duetime.cli.documents.writing import exported
from duetime.cli.program import value_option

commands = standalone()


@command(
    commands, "export", "duetime export > schedules.yaml", "duetime export --managed-by shop > schedules.yaml"
)
def export(
    context: typer.Context,
    managed_by: Annotated[
        str | None, value_option("--managed-by", "NAME", "Only schedules that are managed by this name.")
    ] = None,
) -> None:
    """Write all schedules as YAML. Secrets are not exported: the file has references to variables in their
    place."""

    async def work(backend: Backend) -> str:
        return exported(await stored_schedules(backend, managed_by))

    typer.echo(with_backend(context, work), nl=False)

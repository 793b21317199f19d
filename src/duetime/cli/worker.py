"""`duetime worker`: run jobs in the foreground; nothing is planned here."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime.cli.command import command, invocation
from duetime.cli.flags import option

Text = str | None


def add_worker(program: typer.Typer) -> None:
    command(
        program,
        "worker",
        "duetime worker tasks:app",
        "duetime worker shop.tasks --queues billing,mail --concurrency 20",
        "duetime worker tasks:app --reload",
    )(worker)


def worker(
    context: typer.Context,
    app: Annotated[Text, typer.Argument(metavar="MODULE:APP", help="Your App, or a module that holds one.", show_default=False)] = None,
    queues: Annotated[Text, option("queues")] = None,
    concurrency: Annotated[Text, option("concurrency")] = None,
    lease: Annotated[Text, option("lease")] = None,
    grace: Annotated[Text, option("grace")] = None,
    max_load: Annotated[Text, option("max_load")] = None,
    log_level: Annotated[Text, option("log_level")] = None,
    log_format: Annotated[Text, option("log_format")] = None,
    migrate: Annotated[bool, typer.Option("--migrate", help="Create or upgrade the schema first.")] = False,
    reload: Annotated[bool, typer.Option("--reload", help="Start anew when source files change: for development.")] = False,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C, like `duetime serve --roles worker`. Schedules need a planner: `duetime serve` is one."""
    from duetime.cli.reload import run_reloading
    from duetime.cli.serve import run_node
    from duetime.errors import ConfigError

    given = {
        "app": app, "queues": queues, "concurrency": concurrency, "lease": lease, "grace": grace, "max_load": max_load,
        "log_level": log_level, "log_format": log_format,
    }  # fmt: skip
    invocation(context).flags.update({name: value for name, value in given.items() if value is not None}, roles="worker")
    settings = invocation(context).settings()
    if settings.app is None:
        raise ConfigError("app: a worker needs the tasks of your program: duetime worker module:app")
    if reload:
        run_reloading(settings)
    else:
        run_node(settings, migrate)

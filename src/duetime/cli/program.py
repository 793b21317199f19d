"""The program `duetime`: its groups of commands and the options that stand before them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duetime.cli.command import Invocation
from duetime.cli.dead import dead
from duetime.cli.demo import add_demo
from duetime.cli.doctor import add_doctor
from duetime.cli.failure import USAGE, Program
from duetime.cli.flags import option, words
from duetime.cli.job import job
from duetime.cli.key import key
from duetime.cli.migrate import add_migrate
from duetime.cli.node import node
from duetime.cli.queue import queue
from duetime.cli.schedule import schedule
from duetime.cli.serve import add_serve
from duetime.cli.simulate import add_simulate
from duetime.cli.task import task
from duetime.cli.watching import add_watching
from duetime.cli.why import add_why
from duetime.cli.worker import add_worker
from duetime.version import VERSION

EPILOG = """Settings come from flags, DUETIME_* variables and duetime.toml, in this order.

\b
Examples:
  duetime serve --app tasks:app
  duetime worker tasks:app --reload
  duetime schedule add nightly report.build --cron "30 2 * * *" --tz Europe/Berlin
  duetime job list --state dead
  duetime --store postgresql://scheduler@db.example.org/duetime doctor
  duetime --server https://duetime.example.org --key-file ~/.duetime-key why nightly
"""
KEY = "The API key for --server. Whoever is on this machine can read it here: better DUETIME_KEY or --key-file."

# Plain help: laying it out with rich takes longer than everything else `--help` does.
program = typer.Typer(
    name="duetime",
    cls=Program,
    help="Every task, in due time: schedules, jobs and the nodes that run them.",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"duetime {VERSION}")
        raise typer.Exit


@program.callback()
def root(
    context: typer.Context,
    store: Annotated[str | None, option("store")] = None,
    app: Annotated[str | None, option("app")] = None,
    server: Annotated[str | None, option("server")] = None,
    key: Annotated[str | None, words("--key", "KEY", KEY)] = None,
    key_file: Annotated[str | None, option("key_file")] = None,
    config: Annotated[Path | None, words("--config", "FILE", "Read settings from this file, not duetime.toml.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the program an error arose.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")] = False,
) -> None:
    context.obj = Invocation({"store": store, "app": app, "server": server, "key": key, "key_file": key_file}, config)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


program.add_typer(job, name="job")
program.add_typer(schedule, name="schedule")
program.add_typer(dead, name="dead")
program.add_typer(queue, name="queue")
program.add_typer(task, name="task")
program.add_typer(node, name="node")
program.add_typer(key, name="key")
for add in (add_demo, add_serve, add_worker, add_migrate, add_doctor, add_simulate, add_watching, add_why):
    add(program)

"""The program `duetime`: its commands, the flags that stand before them, and how it ends."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from duetime.config import TABLE, Settings
from duetime.config_sources import load
from duetime.errors import ConfigError, DuetimeError, InvalidInput, NeverFires, PayloadTooLarge
from duetime.version import VERSION

# What was typed on the command line, the settings it leads to, and the flags of settings.


@dataclass(frozen=True, slots=True)
class Invocation:
    """The flags that were given. The other sources of settings are read when a command asks."""

    flags: dict[str, Any]
    config: Path | None


def invocation(context: typer.Context) -> Invocation:
    found = context.find_object(Invocation)
    return Invocation({}, None) if found is None else found


def settings_of(context: typer.Context, **flags: str | None) -> Settings:
    """The settings of this invocation, with these flags added to those that stand before the command."""
    given = invocation(context)
    given.flags.update({name: value for name, value in flags.items() if value is not None})
    return load(given.flags, os.environ, given.config)


def setting_option(name: str, **more: Any) -> Any:
    """The flag of a setting. Its value stays text: the settings parse all sources alike."""
    setting = TABLE[name]
    default = f" [default: {setting.shown_default}]" if setting.shown_default else ""
    text = f"{setting.text} [env: {setting.variable}]{default}"
    return typer.Option(setting.flag, metavar=setting.form, show_default=False, help=text, **more)


def value_option(flag: str, form: str, text: str, **more: Any) -> Any:
    """A flag that takes a value."""
    return typer.Option(flag, metavar=form, help=text, **more)


# How commands fail: one line on stderr, and an exit status that tells scripts the kind of failure.


REFUSED, USAGE = 1, 2
# Correctly written, and still not accepted.
_REFUSALS = (NeverFires, PayloadTooLarge)

Load = Callable[[str], Any]


def status_of(problem: DuetimeError) -> int:
    wrongly_written = isinstance(problem, InvalidInput | ConfigError) and not isinstance(problem, _REFUSALS)
    return USAGE if wrongly_written else REFUSED


def report(message: str, code: str) -> None:
    """The one line of an error."""
    from duetime.cli.format import (
        visible,  # it brings asyncio with the clock, and `duetime --help` has no use for it
    )

    typer.echo(f"error: {visible(' '.join(message.split()))} [{code}]", err=True)


def usage_message(problem: Any, load: Load) -> str:
    """What is wrong with a command line, and the line that would be right where we can tell. `load`
    returns a command by its name."""
    context, option = getattr(problem, "ctx", None), getattr(problem, "option_name", None)
    where = getattr(context, "command_path", "duetime")
    if context is not None:
        root = context.find_root()
        if context is not root and option in _options_of(root.command):
            command = where.removeprefix(f"{root.command_path} ")
            return f"{option} goes before the command: write `{root.command_path} {option} ... {command} ...`"
        if context is root and option in {
            name for one in root.command.commands for name in _options_below(load(one))
        }:
            return f"{option} goes after the command: write `{where} ... {option}`"
    text = problem.format_message().rstrip(".").removeprefix("Invalid value: ")
    misplaced = text.startswith("Got unexpected extra argument") and "({" in text
    if context is not None and misplaced and "--payload" in _options_of(context.command):
        return f"the task's arguments go after --payload: write `{where} TASK --payload '{{...}}'`"
    return f"{text} See `{where} --help`" if text.endswith("?") else f"{text}: see `{where} --help`"


def _options_below(command: Any) -> set[str]:
    """The options of a command, and of all commands in a group."""
    below = getattr(command, "commands", {}).values()
    return _options_of(command).union(*(_options_below(one) for one in below))


def _options_of(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


# Each name is also that of its file in `commands`, except for those in SHARED.
COMMANDS = {
    "serve": "Run a node with the HTTP API and the web UI.",
    "worker": "Run jobs only.",
    "job": "Submit, list, show, cancel and retry jobs.",
    "schedule": "Add, list, edit, pause and preview schedules.",
    "apply": "Make the schedules equal to those in files.",
    "export": "Write the schedules as a file for `apply`.",
    "import": "Write the schedules of another system as a file for `apply`.",
    "shadow": "Compare shadow schedules with what another system ran.",
    "dead": "List dead letters; retry or discard them.",
    "alert": "List, snooze and close alerts; set channels.",
    "queue": "List queues; pause, resume and limit them.",
    "task": "List the tasks that jobs can be submitted to.",
    "node": "List the nodes that plan and work.",
    "broker": "Show whether the broker answers, and its messages.",
    "key": "Create, list and revoke API keys.",
    "why": "Explain why a job or a schedule is as it is.",
    "events": "Follow jobs, schedules, nodes and queues live.",
    "stats": "Show current load, recent results and what is late.",
    "simulate": "Preview the load of all schedules on a virtual clock.",
    "doctor": "Check the store, the nodes and what is overdue.",
    "migrate": "Create or upgrade the schema of the store.",
    "archive": "Move old finished jobs to files or S3.",
    "backup": "Write a checked copy of a SQLite store.",
    "restore": "Restore a backup; nothing starts until `adopt`.",
    "adopt": "Let a restored store work; decide about missed work.",
    "copy": "Copy everything into another store, or compare two.",
    "demo": "Add sample schedules to the local service.",
}
SHARED = {"worker": "serve", "import": "importing", "restore": "backup"}
EPILOG = """Settings come from flags, DUETIME_* variables, .env and duetime.toml, in this order.

\b
Examples:
  duetime serve --app tasks:app
  duetime worker tasks:app --reload
  duetime schedule add nightly report.build --cron "30 2 * * *" --tz Europe/Berlin
  duetime job list --state dead
  duetime --store postgresql://scheduler@db.example.org/duetime doctor
  duetime --server https://duetime.example.org --key-file ~/.duetime-key why nightly
"""
KEY = "The API key for --server. Visible in the process list: prefer DUETIME_KEY or --key-file."
PIPE_CLOSED = 128 + 13
# What a write to standard output answers when it cannot go on. Commands report the errors of their own files.
_LOST_OUTPUT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
MAKE_ROOM = "make room, or send it elsewhere; changes that the command has made are kept"
# Some versions of typer carry a click of their own, others use the installed one; typer's exports lead to
# either.
_CLICK_ERROR: type = typer.BadParameter.__mro__[2]


@cache
def load_command(name: str) -> Any:
    """Import the file of a command."""
    made = get_command(import_module(f"duetime.cli.commands.{SHARED.get(name, name)}").commands)
    found = getattr(made, "commands", {}).get(name, made)
    found.name = name
    return found


class PipeClosed(Exception):
    """The reader of our output has closed it."""


class Program(TyperGroup):
    """The root group. It knows only names and one-line help of its commands until one is used; errors of
    all commands end here."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands.update(
            {
                name: TyperCommand(name=name, help=text, rich_markup_mode=None)
                for name, text in COMMANDS.items()
            }
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_command(name), rest

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        if sys.stdin is None:  # it was closed: nothing to read, as with /dev/null
            sys.stdin = open(os.devnull)  # noqa: SIM115
        try:
            status = super().main(given, prog_name, complete_var, False, windows_expand_args, **extra)
        except PipeClosed:
            _exit_quietly()
        except typer.Abort:
            if sys.stdout is not None and sys.stdout.isatty():
                typer.echo()  # the question has no end of line
            _exit("nothing was done: answer with y, or give --yes", "aborted", REFUSED)
        except DuetimeError as problem:
            _show_traceback(problem, given)
            _exit(problem.message, problem.code, status_of(problem))
        except Exception as problem:
            _show_traceback(problem, given)
            if isinstance(problem, _CLICK_ERROR):
                _exit(usage_message(problem, load_command), "usage", USAGE)
            if lost := _why_output_is_lost(problem):
                _exit(f"the output cannot be written ({lost}): {MAKE_ROOM}", "output", REFUSED)
            _exit(
                f"unexpected {type(problem).__name__}: {problem}; run it with `duetime --debug` to see where",
                "internal",
                REFUSED,
            )
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None  # click would exit with status 1
        return result


def _why_output_is_lost(problem: Exception) -> str | None:
    """None for other errors. Those about a file that is named are not about the output."""
    if not isinstance(problem, OSError) or problem.errno not in _LOST_OUTPUT or problem.filename is not None:
        return None
    return problem.strerror


def _exit_quietly() -> NoReturn:
    """With the status of a program that SIGPIPE ends. Python would write the rest of its buffer once more,
    and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(PIPE_CLOSED)


def _exit(message: str, code: str, status: int) -> NoReturn:
    report(message, code)
    sys.exit(status)


def _show_traceback(problem: BaseException, given: list[str]) -> None:
    if "--debug" in given:
        typer.echo("".join(traceback.format_exception(problem)), err=True, nl=False)


# Plain help: rich needs longer for the layout than everything else that `--help` does.
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
    store: Annotated[str | None, setting_option("store")] = None,
    app: Annotated[str | None, setting_option("app")] = None,
    server: Annotated[str | None, setting_option("server")] = None,
    key: Annotated[str | None, value_option("--key", "KEY", KEY)] = None,
    key_file: Annotated[str | None, setting_option("key_file")] = None,
    config: Annotated[
        Path | None, value_option("--config", "FILE", "Read settings from this file, not duetime.toml.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    context.obj = Invocation(
        {"store": store, "app": app, "server": server, "key": key, "key_file": key_file}, config
    )
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)

"""How commands fail: one line on stderr, and an exit status that tells scripts the kind of failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from duetime.errors import ConfigError, DuetimeError, InvalidInput, NeverFires, PayloadTooLarge

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
            command = where.removeprefix("duetime ")
            return f"{option} goes before the command: write `duetime {option} ... {command} ...`"
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

"""How commands fail: one line on stderr, and the exit status that tells scripts what kind of failure it was."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from duetime.cli.escape import visible
from duetime.errors import ConfigError, DuetimeError, InvalidInput, NeverFires, PayloadTooLarge

REFUSED, USAGE = 1, 2
PIPE_CLOSED = 128 + 13
# Well-formed, and still not accepted.
_REFUSALS = (NeverFires, PayloadTooLarge)
# typer carries a click of its own in some versions and uses the installed one in others; its own exports are the way to both.
_CLICK_ERROR: type = typer.BadParameter.__mro__[2]


class Program(TyperGroup):
    """The root group. Whatever a command raises ends here, whether it was started from a shell or by a test."""

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
        try:
            status = super().main(given, prog_name, complete_var, False, windows_expand_args, **extra)
        except PipeClosed:
            _end_quietly()
        except typer.Abort:
            if sys.stdout is not None and sys.stdout.isatty():
                typer.echo()  # the question has no end of line
            _leave("nothing was done: answer with y, or give --yes", "aborted", REFUSED)
        except DuetimeError as problem:
            _explain(problem, given)
            _leave(problem.message, problem.code, status_of(problem))
        except Exception as problem:
            _explain(problem, given)
            if isinstance(problem, _CLICK_ERROR):
                _leave(*_usage(problem), USAGE)
            _leave(f"unexpected {type(problem).__name__}: {problem}; run it with `duetime --debug` to see where", "internal", REFUSED)
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        try:
            answer = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None  # click would tell it as a refusal
        return answer


class PipeClosed(Exception):
    """Who read our output has seen enough."""


def _end_quietly() -> NoReturn:
    """As a program does that the signal reaches."""
    # Python would try once more to write what is left, and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(PIPE_CLOSED)


def status_of(problem: DuetimeError) -> int:
    wrongly_written = isinstance(problem, InvalidInput | ConfigError) and not isinstance(problem, _REFUSALS)
    return USAGE if wrongly_written else REFUSED


def report(message: str, code: str) -> None:
    """The one line by which an error is known."""
    typer.echo(f"error: {visible(' '.join(message.split()))} [{code}]", err=True)


def _leave(message: str, code: str, status: int) -> NoReturn:
    report(message, code)
    sys.exit(status)


def _explain(problem: BaseException, given: list[str]) -> None:
    if "--debug" in given:
        typer.echo("".join(traceback.format_exception(problem)), err=True, nl=False)


def _usage(problem: Any) -> tuple[str, str]:
    context, option = getattr(problem, "ctx", None), getattr(problem, "option_name", None)
    where = getattr(context, "command_path", "duetime")
    if context is not None and option in _options_of_all(context):
        return f"{option} stands before the command: write `duetime {option} ... {where.removeprefix('duetime ')} ...`", "usage"
    if context is not None and context.parent is None and option in _options_below(context.command):
        return f"{option} stands after the command: write `{where} ... {option}`", "usage"
    said = problem.format_message().rstrip(".")
    misplaced = said.startswith("Got unexpected extra argument") and "({" in said
    if context is not None and misplaced and "--payload" in _options_of(context.command):
        return f"what a task is called with stands behind --payload: write `{where} TASK --payload '{{...}}'`", "usage"
    return f"{said} See `{where} --help`" if said.endswith("?") else f"{said}: see `{where} --help`", "usage"


def _options_of_all(context: Any) -> set[str]:
    """Those of `duetime` itself, where a command below it was called."""
    root = context.find_root()
    return set() if context is root else _options_of(root.command)


def _options_below(command: Any) -> set[str]:
    """Those of all commands of a group, and of the groups in it."""
    below = getattr(command, "commands", {}).values()
    return {name for one in below for name in _options_of(one) | _options_below(one)}


def _options_of(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}

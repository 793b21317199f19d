"""The program `momentum`: its commands, and how it ends."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import duetime as dt
from momentum import __version__
from momentum.cli import doctor, keys, log, posts, serve
from momentum.errors import ConfigError, InvalidPost, MomentumError

REFUSED, USAGE = 1, 2
EPILOG = """Settings come from flags and MOMENTUM_* variables: docs/momentum.md lists them.

\b
Examples:
  momentum serve --demo
  momentum serve --database postgresql://momentum@db.example.org/momentum --auth keys
  momentum worker --platform linkedin
  momentum key create "content team" --tenant marketing
  momentum posts import calendar.csv --dry-run
  momentum log --outcome failed
"""
# Some versions of typer carry a click of their own, others use the installed one.
_CLICK_ERROR: type = typer.BadParameter.__mro__[2]


class Program(TyperGroup):
    """Every error is one line with a code, and an exit status for scripts."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        options["standalone_mode"] = False
        try:
            status = super().main(*arguments, **options)
        except (MomentumError, dt.DuetimeError) as problem:
            wrong = isinstance(problem, ConfigError | InvalidPost | dt.ConfigError)
            _exit(problem.message, problem.code, USAGE if wrong else REFUSED)
        except typer.Abort:
            _exit("nothing was done", "aborted", REFUSED)
        except BrokenPipeError:
            sys.stderr.close()
            sys.exit(128 + 13)
        except Exception as problem:
            if isinstance(problem, _CLICK_ERROR):
                message = problem.format_message().rstrip(".")  # type: ignore[attr-defined]
                _exit(f"{message}: see `momentum --help`", "usage", USAGE)
            raise
        sys.exit(status if isinstance(status, int) else 0)


def _exit(message: str, code: str, status: int) -> NoReturn:
    typer.echo(f"error: {' '.join(message.split())} [{code}]", err=True)
    sys.exit(status)


program = typer.Typer(
    name="momentum",
    cls=Program,
    help="Posts published to LinkedIn on time.",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
program.command("serve", epilog=serve.SERVE_EXAMPLES)(serve.serve)
program.command("worker", epilog=serve.WORKER_EXAMPLES)(serve.worker)
program.add_typer(keys.commands, name="key")
program.add_typer(posts.commands, name="posts")
program.command("log", epilog=log.EXAMPLES)(log.log)
program.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"momentum {__version__}")
        raise typer.Exit


@program.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    os.umask(0o077)  # files of posts and tokens are for this user only
    program(prog_name="momentum")

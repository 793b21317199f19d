"""The command line. `duetime --help` imports no command: each is a file in `commands`, imported when it is
used."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.cli.program import program


def main(arguments: Sequence[str] | None = None, name: str = "duetime") -> None:
    """Run the command that these arguments, or those of the process, name, and exit with its status.
    `name` is the program's name."""
    program(None if arguments is None else list(arguments), prog_name=name)

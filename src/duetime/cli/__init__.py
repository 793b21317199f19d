"""The command line. Everything heavy is imported by the command that needs it, so that `duetime --help` and completion are quick."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None, name: str = "duetime") -> None:
    """Carry out these words, or those of the process, and leave it with the status; `name` is what the user typed before them."""
    from duetime.cli.program import program

    program(None if arguments is None else list(arguments), prog_name=name)

"""The command line. `duetime --help` imports no command: each is a file in `commands`, imported when it is
used."""

from __future__ import annotations

import sys
from collections.abc import Sequence

INTERRUPTED = 130  # the status of a shell for Ctrl-C


def main(arguments: Sequence[str] | None = None, name: str = "duetime") -> None:
    """Run the command that these arguments, or those of the process, name, and exit with its status.
    `name` is the program's name."""
    try:
        from duetime.cli.program import program  # here: Ctrl-C may come while it is imported
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    program(None if arguments is None else list(arguments), prog_name=name)

"""The command line. Everything heavy is imported by the command that needs it, so that `duetime --help` and completion are quick."""

from __future__ import annotations


def main() -> None:
    from duetime.cli.program import program

    program()

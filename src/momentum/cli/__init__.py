"""The command line `momentum`."""

from momentum.cli.program import main

__all__ = ["main"]

"""`manage.py` commands that pass their arguments to the command line of Duetime."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from duetime.cli import main

CLI_APP = "duetime.frameworks.django.cli_app:app"


class PassThrough(BaseCommand):
    words: tuple[str, ...] = ()  # the command; empty: the arguments name it

    def run_from_argv(self, argv: list[str]) -> None:
        """Django's own parser rejects options it does not know."""
        self._run(_without_django_options(argv[2:]), " ".join(argv[:2]))

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("words", nargs="*")

    def handle(self, *_: Any, **options: Any) -> None:
        self._run(options["words"], self.__module__.rpartition(".")[2])

    def _run(self, words: Sequence[str], name: str) -> None:
        main(["--app", CLI_APP, *self.words, *words], name)


def _without_django_options(words: list[str]) -> list[str]:
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--settings")
    parser.add_argument("--pythonpath")
    return parser.parse_known_args(words)[1]

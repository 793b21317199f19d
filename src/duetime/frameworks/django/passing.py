"""`manage.py` commands that hand their words over to the command line of Duetime."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from duetime.cli import main

ENTRY = "duetime.frameworks.django.entry:app"


class Passing(BaseCommand):
    words: tuple[str, ...] = ()  # which command; none: the words say it

    def run_from_argv(self, argv: list[str]) -> None:
        """Django's parser would stumble over options it does not know."""
        self._hand_over(_without_djangos(argv[2:]), " ".join(argv[:2]))

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("words", nargs="*")

    def handle(self, *_: Any, **options: Any) -> None:
        self._hand_over(options["words"], self.__module__.rpartition(".")[2])

    def _hand_over(self, words: Sequence[str], name: str) -> None:
        main(["--app", ENTRY, *self.words, *words], name)


def _without_djangos(words: list[str]) -> list[str]:
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--settings")
    parser.add_argument("--pythonpath")
    return parser.parse_known_args(words)[1]

"""The App for the command line: `duetime worker duetime.frameworks.django.cli_app:app`, with
DJANGO_SETTINGS_MODULE set. It loads Django if necessary, and closes old database connections around every
attempt, as Django does around every request."""

from __future__ import annotations

import inspect
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.management.base import BaseCommand, CommandParser
from django.db import close_old_connections

from duetime.app import App
from duetime.cli import main
from duetime.frameworks.django.app_factory import get_app

# `manage.py` commands that pass their arguments to the command line of Duetime.


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


def _load() -> App:
    if not apps.ready:
        django.setup()
    found = get_app()
    for task in found.tasks.values():
        task.function = _closing_old_connections(task.function)
    return found


def _closing_old_connections(function: Callable[..., Any]) -> Callable[..., Any]:
    """Connections belong to threads, so old ones are closed on the thread that runs the function."""

    @wraps(function)
    def plain(*arguments: Any, **named: Any) -> Any:
        close_old_connections()
        try:
            return function(*arguments, **named)
        finally:
            close_old_connections()

    @wraps(function)
    async def asynchronous(*arguments: Any, **named: Any) -> Any:
        await sync_to_async(close_old_connections)()
        try:
            return await function(*arguments, **named)
        finally:
            await sync_to_async(close_old_connections)()

    return asynchronous if inspect.iscoroutinefunction(function) else plain


app = _load()

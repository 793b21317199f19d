"""Flask: views submit through `app.sync`, which opens at its first call and closes with the process. Tasks
run in the application context. `flask duetime worker` and all other commands use the application's App."""

from __future__ import annotations

import atexit
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

import click
from flask import Flask, current_app
from flask.cli import with_appcontext

from duetime.app import App
from duetime.errors import NotOpen

EXTENSION = "duetime"
# The application whose context the tasks of an App see: the last one, because tests create many.
_hosts: WeakKeyDictionary[App, Flask] = WeakKeyDictionary()


def init_app(web: Flask, app: App) -> None:
    """Add the App to a Flask application. A factory may call it many times."""
    web.extensions[EXTENSION] = app
    web.cli.add_command(_duetime)
    if app not in _hosts:
        app.middleware(_in_context(app))
        atexit.register(app.sync.close)
    _hosts[app] = web


def get_app() -> App:
    """The App of the application that serves this request, or whose context is pushed."""
    found = current_app.extensions.get(EXTENSION)
    if not isinstance(found, App):
        raise NotOpen("this Flask application has no App: call duetime.frameworks.flask.init_app(web, app)")
    return found


def _in_context(app: App) -> Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]:
    async def in_context(context: Any, call_next: Callable[[], Awaitable[Any]]) -> Any:
        with _hosts[app].app_context():
            return await call_next()

    return in_context


@click.command(
    "duetime",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@with_appcontext
def _duetime(words: tuple[str, ...]) -> None:
    """Duetime's commands on this application's App: worker, serve, job, schedule, queue ..."""
    from duetime.cli import main

    main(["--app", f"{__name__}:app", *words], "flask duetime")


def __getattr__(name: str) -> Any:
    if name == "app":  # the command line finds it by this name
        return get_app()
    raise AttributeError(name)

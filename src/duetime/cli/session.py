"""A command's work on the store: find the app, open it, do the work, close it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlsplit

import typer

from duetime.app import App
from duetime.cli.command import invocation
from duetime.cli.loading import load_app
from duetime.config import Settings
from duetime.errors import ConfigError
from duetime.model.instant import to_datetime

Answer = TypeVar("Answer")


def with_app(context: typer.Context, work: Callable[[App], Awaitable[Answer]], *, creates: bool = False) -> Answer:
    """Carry out `work` on the opened app. Only commands that write something new may bring a SQLite file into being."""
    settings = invocation(context).settings()
    app = find_app(settings)
    if not creates and (settings.app is None or settings.given("store")):
        require_file(settings.store)

    async def carry_out() -> Answer:
        try:
            await app.open()
            return await work(app)
        finally:
            await app.close()

    return asyncio.run(carry_out())


def find_app(settings: Settings) -> App:
    """The user's app where one is named, else a plain one; on the store that was asked for."""
    if settings.app is None:
        return App(settings.store)
    app = load_app(settings.app)
    if settings.given("store"):
        app.use_store(settings.store)
    return app


async def store_now(app: App) -> datetime:
    return to_datetime(await app.store.time())


def require_file(store: str) -> None:
    """Reading from a file that is not there would show an empty list where the folder or the name is wrong."""
    if urlsplit(store).scheme.lower() == "sqlite":
        from duetime.stores.sqlite.location import path_of

        path = path_of(store)
        if not path.exists():
            raise ConfigError(f"store: there is no file {path} yet: name another with --store, or let `duetime migrate` create it")

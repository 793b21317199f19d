"""A command's work: find what it is to work on, open it, do the work, close it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import typer

from duetime.app import App
from duetime.cli.command import invocation
from duetime.cli.loading import load_app
from duetime.config import Settings
from duetime.errors import ConfigError

if TYPE_CHECKING:
    from duetime.cli.access import Access

Answer = TypeVar("Answer")
RETRIES = 3  # of a request: somebody waits at the terminal


def with_access(context: typer.Context, work: Callable[[Access], Awaitable[Answer]], *, creates: bool = False) -> Answer:
    """Carry out `work` on the service that was named, or on the store. Only commands that write something new may bring a SQLite file
    into being."""
    settings = invocation(context).settings()

    async def carry_out() -> Answer:
        async with access(settings, creates) as found:
            return await work(found)

    return asyncio.run(carry_out())


@asynccontextmanager
async def access(settings: Settings, creates: bool = False) -> AsyncIterator[Access]:
    if reaches_server(settings):
        from duetime.remote import AsyncClient

        assert settings.server is not None
        async with AsyncClient(settings.server, key_of(settings), retries=RETRIES) as client:
            yield client
        return
    from duetime.cli.local import Local

    async with opened(settings, creates) as app:
        yield Local(app)


def with_app(context: typer.Context, work: Callable[[App], Awaitable[Answer]], *, creates: bool = False) -> Answer:
    """As `with_access`, for commands that need the store itself."""
    settings = invocation(context).settings()

    async def carry_out() -> Answer:
        async with opened(settings, creates) as app:
            return await work(app)

    return asyncio.run(carry_out())


@asynccontextmanager
async def opened(settings: Settings, creates: bool) -> AsyncIterator[App]:
    app = find_app(settings)
    if not creates and (settings.app is None or settings.given("store")):
        require_file(settings.store)
    try:
        await app.open()
        yield app
    finally:
        await app.close()


def find_app(settings: Settings) -> App:
    """The user's app where one is named, else a plain one; on the store that was asked for."""
    if settings.sources.get("server") == "--server":
        raise ConfigError("server: this command works on the store itself: give --store in its place")
    if settings.app is None:
        return App(settings.store)
    app = load_app(settings.app)
    if settings.given("store"):
        app.use_store(settings.store)
    return app


def reaches_server(settings: Settings) -> bool:
    """Whether commands go to a service. A store or an app named on the command line goes before a server named elsewhere."""
    if settings.server is None:
        return False
    flags = [flag for flag in ("--store", "--app") if flag in settings.sources.values()]
    if flags and settings.sources["server"] == "--server":
        raise ConfigError(f"server: --server and {flags[0]} are two different places: give one of them")
    return not flags


def key_of(settings: Settings) -> str | None:
    """The key for the service; from a file, so that it stands in no list of processes."""
    if settings.key is not None or settings.key_file is None:
        return settings.key
    try:
        return Path(settings.key_file).expanduser().read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is no text"
        raise ConfigError(f"key_file: {settings.key_file} cannot be read: {reason}") from None


def require_file(store: str) -> None:
    """Reading from a file that is not there would show an empty list where the folder or the name is wrong."""
    if urlsplit(store).scheme.lower() == "sqlite":
        from duetime.stores.sqlite.location import path_of

        path = path_of(store)
        if not path.exists():
            raise ConfigError(f"store: there is no file {path} yet: name another with --store, or let `duetime migrate` create it")

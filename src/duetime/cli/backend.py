"""Where a command does its work: on a store, through an app, or on a service over HTTP. Both offer the
same calls and results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import typer

from duetime.cli.files import read_text
from duetime.cli.program import settings_of
from duetime.config import FOLDER, TABLE, Settings, hide_password
from duetime.errors import ConfigError, InvalidInput, JobNotFound
from duetime.model.ids import read_id_part

# Imported where they are used: help needs none of them, a command one of app and client, and each takes
# longer to import than a short command runs.
if TYPE_CHECKING:
    from duetime.app import App
    from duetime.cli.store_backend import StoreBackend
    from duetime.model.views import ScheduleView
    from duetime.remote import AsyncClient

Backend: TypeAlias = "StoreBackend | AsyncClient"
Place = TypeVar("Place")
Answer = TypeVar("Answer")
PAGE = 1_000
RETRIES = 3  # of a request: a person waits at the terminal
_logger = getLogger("duetime")


def with_backend(
    context: typer.Context, work: Callable[[Backend], Awaitable[Answer]], *, creates: bool = False
) -> Answer:
    """Do the work on the service or the store that was named. Only commands that write something new may
    create a SQLite file."""
    return asyncio.run(_with(open_backend(settings_of(context), creates), work))


async def _with(
    opening: AbstractAsyncContextManager[Place], work: Callable[[Place], Awaitable[Answer]]
) -> Answer:
    async with opening as place:
        return await work(place)


async def find_job(backend: Backend, text: str) -> UUID:
    """The job with this id, or with an id of which this is the beginning or the end, as in the UI."""
    try:
        return UUID(text)
    except ValueError:
        pass
    try:
        read_id_part(text)
    except InvalidInput as problem:
        raise JobNotFound(problem.message) from None
    found = await backend.jobs(id=text, limit=2)
    if not found:
        raise JobNotFound(f"no job has an id with {text!r}: see `duetime job list`")
    if len(found) > 1:
        raise InvalidInput("id", f"{text!r} is part of several ids: give more digits, such as {found[0].id}")
    return found[0].id


async def time_of(backend: Backend) -> datetime:
    from duetime.cli.store_backend import StoreBackend

    return await backend.now() if isinstance(backend, StoreBackend) else (await backend.me()).now


@asynccontextmanager
async def open_backend(settings: Settings, creates: bool = False) -> AsyncIterator[Backend]:
    if uses_server(settings):
        from duetime.remote import AsyncClient

        assert settings.server is not None
        async with AsyncClient(settings.server, key_of(settings), retries=RETRIES) as client:
            yield client
    else:
        from duetime.cli.store_backend import StoreBackend

        async with open_app(settings, creates) as app:
            yield StoreBackend(app, settings)


@asynccontextmanager
async def open_app(settings: Settings, creates: bool = False) -> AsyncIterator[App]:
    app = find_app(settings)
    if not creates:
        require_file(settings)
    try:
        await app.open()
        yield app
    finally:
        await app.close()


async def active_schedules(backend: Backend) -> list[ScheduleView]:
    found: list[ScheduleView] = []
    while page := await backend.schedules(paused=False, limit=PAGE, after=found[-1].name if found else None):
        found += page
    return found


def find_app(settings: Settings) -> App:
    """The user's app if one is named, else one without tasks; on the store that was named."""
    refuse_server(settings)
    from duetime.app import App
    from duetime.cli.loading import load_app
    from duetime.stores import from_url

    if settings.app is None:
        return App(from_url(settings.store), leases=settings.leases, strict_tasks=settings.strict_tasks)
    app = load_app(settings.app)
    if settings.given("strict_tasks"):
        app.use_strict_tasks(settings.strict_tasks)
    if settings.given("store"):
        if (own := app.url_in_code) is not None and own != settings.store:
            _say_replaced(own, settings)
        app.use_store(settings.store)
    if settings.leases is not None:
        app.use_leases(settings.leases)
    return app


def _say_replaced(url: str, settings: Settings) -> None:
    """In the log of a node. A command has none, and Python writes the line to stderr."""
    used, own = hide_password(settings.store), hide_password(url)
    _logger.warning("the store is %s (%s), not %s of %s", used, settings.sources["store"], own, settings.app)


def find_store_url(settings: Settings) -> str:
    """The store that commands use, for those that open it without its app."""
    refuse_server(settings)
    if settings.app is None or settings.given("store"):
        return settings.store
    from duetime.cli.loading import load_app

    url = load_app(settings.app).store_url
    if url is None:
        raise ConfigError(f"app: the store of {settings.app} has no URL: name the store with --store")
    return url


def refuse_server(settings: Settings) -> None:
    if settings.sources.get("server") == "--server":
        raise ConfigError("server: this command works on the store itself: use --store instead of --server")


def uses_server(settings: Settings) -> bool:
    """Whether commands go to a service. A store or an app named on the command line wins over a server
    named elsewhere."""
    if settings.server is None:
        return False
    flags = [flag for flag in ("--store", "--app") if flag in settings.sources.values()]
    if flags and settings.sources["server"] == "--server":
        raise ConfigError(f"server: use either --server or {flags[0]}, not both")
    return not flags


def key_of(settings: Settings) -> str | None:
    """The API key; a file keeps it out of the process list."""
    if settings.key is not None:
        settings.require_trust("key")
        return settings.key
    if settings.key_file is None:
        return None
    settings.require_trust("key_file")
    _require_own_folder(settings, Path(settings.key_file).expanduser())
    try:
        return read_text(settings.key_file).strip() or None
    except ValueError as problem:
        raise ConfigError(f"key_file: {settings.key_file} cannot be read: {problem}") from None


def _require_own_folder(settings: Settings, path: Path) -> None:
    """Otherwise a file in a folder could have any file of the user sent to its server."""
    if settings.distances.get("key_file") == FOLDER and not path.resolve().is_relative_to(Path.cwd()):
        raise ConfigError(
            f"key_file (from {settings.sources['key_file']}): {path} is outside of this folder: "
            f"give it with --key-file or {TABLE['key_file'].variable}"
        )


def require_file(settings: Settings) -> None:
    """A SQLite file that is missing is an error: an empty list would hide a wrong folder or name."""
    own = settings.app is not None and not settings.given("store")
    if own or urlsplit(settings.store).scheme.lower() != "sqlite":
        return
    from duetime.stores.sqlite.location import path_of

    path = path_of(settings.store)
    if not path.exists():
        raise ConfigError(
            f"store: there is no file {path}: name another with --store, or create it with `duetime migrate`"
        )

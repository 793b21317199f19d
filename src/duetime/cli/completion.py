"""What the shell offers after TAB. Anything that goes wrong offers nothing, and no code of the user's is imported for it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import typer

from duetime.errors import DuetimeError

if TYPE_CHECKING:
    from duetime.app import App

    Reader = Callable[[App], Awaitable[Iterable[str]]]

PATIENCE = 1.0  # seconds; a store that is away must not hang the prompt
NEWEST = 500  # jobs that are asked for the names of their tasks


def complete_state(incomplete: str) -> list[str]:
    from duetime.model.job import State

    return [state.value for state in State if state.startswith(incomplete)]


def complete_zone(incomplete: str) -> list[str]:
    from zoneinfo import available_timezones

    return sorted(name for name in available_timezones() if name.lower().startswith(incomplete.lower()))


def complete_conflict(incomplete: str) -> list[str]:
    from duetime.model.unique import OnConflict

    return [way.value for way in OnConflict if way.startswith(incomplete)]


def complete_schedule(context: typer.Context, incomplete: str) -> list[str]:
    async def names(app: App) -> Iterable[str]:
        return [one.name for one in await app.schedules(limit=1_000)]

    return _from_store(context, names, incomplete)


def complete_queue(context: typer.Context, incomplete: str) -> list[str]:
    async def names(app: App) -> Iterable[str]:
        return [one.name for one in await app.store.queues()]

    return _from_store(context, names, incomplete)


def complete_queues(context: typer.Context, incomplete: str) -> list[str]:
    """The last of several names with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_queue(context, last)]


def complete_task(context: typer.Context, incomplete: str) -> list[str]:
    """Tasks that schedules or the newest jobs name."""

    async def names(app: App) -> Iterable[str]:
        recent = await app.jobs(limit=NEWEST)
        return {*(one.task for one in await app.schedules(limit=1_000)), *(one.task for one in recent)}

    return _from_store(context, names, incomplete)


def _from_store(context: typer.Context, names: Reader, incomplete: str) -> list[str]:
    import asyncio

    from duetime.config import load

    given = context.params.get("store") or context.find_root().params.get("store")
    try:
        settings = load({"store": given}, os.environ)
        return asyncio.run(_read(settings.store, names, incomplete))
    except (DuetimeError, OSError):
        return []


async def _read(store: str, names: Reader, incomplete: str) -> list[str]:
    import asyncio

    from duetime.app import App
    from duetime.cli.session import require_file

    require_file(store)
    app = App(store)
    async with asyncio.timeout(PATIENCE):
        try:
            await app.open()
            return sorted(name for name in await names(app) if name.startswith(incomplete))
        finally:
            await app.close()

"""What the shell offers after TAB. Anything that goes wrong offers nothing, and no code of the user's is imported for it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import typer

from duetime.errors import DuetimeError

if TYPE_CHECKING:
    from duetime.cli.access import Access

    Reader = Callable[[Access], Awaitable[Iterable[str | None]]]

PATIENCE = 1.0  # seconds; a store or a server that is away must not hang the prompt
NEWEST = 500  # jobs that are asked for the names of their tasks
MOST = 1_000
PLACES = ("store", "server", "key", "key_file")


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
    async def names(access: Access) -> Iterable[str]:
        return [one.name for one in await access.schedules(limit=MOST)]

    return _asked(context, names, incomplete)


def complete_queue(context: typer.Context, incomplete: str) -> list[str]:
    async def names(access: Access) -> Iterable[str]:
        return [one.name for one in await access.queues()]

    return _asked(context, names, incomplete)


def complete_queues(context: typer.Context, incomplete: str) -> list[str]:
    """The last of several names with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_queue(context, last)]


def complete_task(context: typer.Context, incomplete: str) -> list[str]:
    """Tasks that workers run, and those that schedules or the newest jobs name."""

    async def names(access: Access) -> Iterable[str | None]:
        scheduled = [one.task for one in await access.schedules(limit=MOST)]
        submitted = [one.task for one in await access.jobs(limit=NEWEST)]
        return {*(one.name for one in await access.known_tasks()), *scheduled, *submitted}

    return _asked(context, names, incomplete)


def complete_target(context: typer.Context, incomplete: str) -> list[str]:
    return [*complete_task(context, incomplete), *(name for name in ("@http",) if incomplete and name.startswith(incomplete))]


def _asked(context: typer.Context, names: Reader, incomplete: str) -> list[str]:
    import asyncio

    from duetime.config import load

    root = context.find_root().params
    given = {name: context.params.get(name) or root.get(name) for name in PLACES}
    try:
        settings = load({name: str(value) for name, value in given.items() if value is not None}, os.environ)
        return asyncio.run(_read(settings, names, incomplete))
    except (DuetimeError, OSError):
        return []


async def _read(settings: object, names: Reader, incomplete: str) -> list[str]:
    import asyncio
    from dataclasses import replace

    from duetime.cli.session import access
    from duetime.config import Settings

    assert isinstance(settings, Settings)
    async with asyncio.timeout(PATIENCE), access(replace(settings, app=None)) as found:
        return sorted(name for name in await names(found) if name is not None and name.startswith(incomplete))

"""What the shell offers after TAB. Errors offer nothing, and none of the user's code is imported."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from zoneinfo import available_timezones

import typer

from duetime.cli.backend import Backend, open_backend
from duetime.config import Settings
from duetime.config_sources import load
from duetime.errors import DuetimeError
from duetime.model.job import State
from duetime.model.unique import OnConflict

TIMEOUT = 1.0  # seconds: an unreachable store or server must not block the prompt
MAX_JOBS = 500  # the newest, read for the names of their tasks
MAX_SCHEDULES = 1_000
PLACES = ("store", "server", "key", "key_file")

Completer = Callable[[typer.Context, str], list[str]]
Reader = Callable[[Backend], Awaitable[Iterable[str | None]]]


def complete_state(incomplete: str) -> list[str]:
    return [state.value for state in State if state.startswith(incomplete)]


def complete_zone(incomplete: str) -> list[str]:
    return sorted(name for name in available_timezones() if name.lower().startswith(incomplete.lower()))


def complete_conflict(incomplete: str) -> list[str]:
    return [policy.value for policy in OnConflict if policy.startswith(incomplete)]


def _completer(names: Reader) -> Completer:
    """A completion of the names that match what was typed."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return _matches(context, names, incomplete)

    return complete


async def _schedules(backend: Backend) -> Iterable[str]:
    return [one.name for one in await backend.schedules(limit=MAX_SCHEDULES)]


async def _queues(backend: Backend) -> Iterable[str]:
    return [one.name for one in await backend.queues()]


async def _tasks(backend: Backend) -> Iterable[str | None]:
    """Of workers, of schedules and of the newest jobs."""
    known = [one.name for one in await backend.known_tasks()]
    scheduled = [one.task for one in await backend.schedules(limit=MAX_SCHEDULES)]
    return {*known, *scheduled, *(one.task for one in await backend.jobs(limit=MAX_JOBS))}


complete_schedule = _completer(_schedules)
complete_queue = _completer(_queues)
complete_task = _completer(_tasks)


def complete_queues(context: typer.Context, incomplete: str) -> list[str]:
    """The last of several names with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_queue(context, last)]


def complete_target(context: typer.Context, incomplete: str) -> list[str]:
    return [
        *complete_task(context, incomplete),
        *(name for name in ("@http",) if incomplete and name.startswith(incomplete)),
    ]


def _matches(context: typer.Context, names: Reader, incomplete: str) -> list[str]:
    root = context.find_root().params
    given = {name: context.params.get(name) or root.get(name) for name in PLACES}
    try:
        settings = load({name: str(value) for name, value in given.items() if value is not None}, os.environ)
        return asyncio.run(_read(replace(settings, app=None), names, incomplete))
    except (DuetimeError, OSError):
        return []


async def _read(settings: Settings, names: Reader, incomplete: str) -> list[str]:
    async with asyncio.timeout(TIMEOUT), open_backend(settings) as backend:
        return sorted(
            name for name in await names(backend) if name is not None and name.startswith(incomplete)
        )

"""What the shell offers after TAB. Anything that goes wrong offers nothing, and no code of the user's is imported for it."""

from __future__ import annotations

import os

import typer

from duetime.errors import DuetimeError

PATIENCE = 1.0  # seconds; a store that is away must not hang the prompt


def complete_state(incomplete: str) -> list[str]:
    from duetime.model.job import State

    return [state.value for state in State if state.startswith(incomplete)]


def complete_zone(incomplete: str) -> list[str]:
    from zoneinfo import available_timezones

    return sorted(name for name in available_timezones() if name.lower().startswith(incomplete.lower()))


def complete_schedule(context: typer.Context, incomplete: str) -> list[str]:
    import asyncio

    from duetime.config import load

    try:
        settings = load({"store": context.find_root().params.get("store")}, os.environ)
        return asyncio.run(_schedule_names(settings.store, incomplete))
    except (DuetimeError, OSError):
        return []


async def _schedule_names(store: str, incomplete: str) -> list[str]:
    import asyncio

    from duetime.app import App
    from duetime.cli.session import require_file

    require_file(store)
    app = App(store)
    async with asyncio.timeout(PATIENCE):
        try:
            await app.open()
            return [one.name for one in await app.schedules(limit=1_000) if one.name.startswith(incomplete)]
        finally:
            await app.close()

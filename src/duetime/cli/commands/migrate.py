"""`duetime migrate`: create or upgrade the schema."""

from __future__ import annotations

import asyncio

import typer

from duetime.app import App
from duetime.cli.backend import find_app
from duetime.cli.command import command, standalone
from duetime.cli.format import say
from duetime.cli.program import settings_of
from duetime.store import Migration

commands = standalone()


@command(commands, "migrate", "duetime --store postgresql://owner@db.example.org/duetime migrate")
def migrate(context: typer.Context) -> None:
    """Create the schema, or upgrade it to this version. Safe to run at any time, and from several places
    at the same time."""
    done = asyncio.run(_migrate(find_app(settings_of(context))))
    say(
        f"schema {done.before} -> {done.after}"
        if done.before != done.after
        else f"schema {done.after}: nothing to do"
    )


async def _migrate(app: App) -> Migration:
    try:
        return await app.migrate()
    finally:
        await app.close()

"""`duetime migrate`: create or upgrade the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from duetime.cli.command import command, invocation

if TYPE_CHECKING:
    from duetime.store import Migration


def add_migrate(program: typer.Typer) -> None:
    command(program, "migrate", "duetime --store postgresql://owner@db.example.org/duetime migrate")(migrate)


def migrate(context: typer.Context) -> None:
    """Create the schema, or bring it to this version. Safe to run at any time and from many places at once."""
    import asyncio

    from duetime.cli.output import say
    from duetime.cli.session import find_app

    app = find_app(invocation(context).settings())

    async def work() -> Migration:
        try:
            return await app.migrate()
        finally:
            await app.close()

    done = asyncio.run(work())
    say(f"schema {done.before} -> {done.after}" if done.before != done.after else f"schema {done.after}: nothing to do")

"""`momentum key`: API keys, and keys that encrypt tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.api.keys import create_key, list_keys, revoke_key
from momentum.cli.options import DEFAULT, DatabaseOption
from momentum.database import Database
from momentum.secret_box import new_key

commands = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)


def _within(database: str, work: Callable[[AsyncConnection], Awaitable[Any]], *, create: bool = False) -> Any:
    """`create`: make the database if there is none."""

    async def run() -> Any:
        opened = Database.of(database)
        try:
            if not create:
                await opened.require()
            await opened.migrate()
            async with opened.transaction() as connection:
                return await work(connection)
        finally:
            await opened.close()

    return asyncio.run(run())


@commands.command("create", epilog='\b\nExamples:\n  momentum key create "content team" --tenant marketing')
def create(
    name: Annotated[str, typer.Argument(help="For people: who uses it.")],
    tenant: Annotated[str, typer.Option(help="The key sees only what belongs to this tenant.")] = "default",
    database: DatabaseOption = DEFAULT.database,
) -> None:
    """Create an API key. It is shown once."""
    _, text = _within(database, lambda connection: create_key(connection, name, tenant), create=True)
    typer.echo(text)


@commands.command("list")
def list_all(database: DatabaseOption = DEFAULT.database) -> None:
    """List the API keys; not their texts, which are not stored."""
    for key in _within(database, list_keys):
        state = "valid" if key.revoked_at is None else f"revoked {key.revoked_at:%Y-%m-%d %H:%M} UTC"
        typer.echo(f"{key.id}  {key.tenant}  {key.name}  {state}")


@commands.command("revoke", epilog="\b\nExamples:\n  momentum key revoke key_01k...")
def revoke(key_id: str, database: DatabaseOption = DEFAULT.database) -> None:
    """Revoke an API key. Sessions that began with it end, too."""
    _within(database, lambda connection: revoke_key(connection, key_id))
    typer.echo(f"{key_id} is revoked")


@commands.command("secret")
def secret() -> None:
    """Print a new key that encrypts tokens, for MOMENTUM_SECRET_KEYS or the first line of the key file."""
    typer.echo(new_key())

"""`momentum posts`: look at posts, and import a file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from momentum.application import Momentum
from momentum.cli.options import DEFAULT, DatabaseOption, KeyFileOption, MediaOption, existing_settings
from momentum.database import accounts, attempts, events, posts
from momentum.errors import ConfigError, Conflict
from momentum.model import PostState
from momentum.posts.commands import PostCommands, Saved
from momentum.posts.content import title_of
from momentum.posts.csv_import import import_csv
from momentum.posts.queries import PostFilter, listing
from momentum.settings import Settings

commands = typer.Typer(help="List, show, import, cancel and publish posts.", no_args_is_help=True)
TenantOption = Annotated[str, typer.Option(envvar="MOMENTUM_TENANT", help="Whose posts.")]
ACTOR = "command line"


def opened(settings: Any, work: Callable[[Momentum], Awaitable[Any]]) -> Any:
    """Do this with everything open, without a worker."""

    async def run() -> Any:
        async with Momentum.opened(settings, roles=("api",)) as momentum:
            return await work(momentum)

    return asyncio.run(run())


def commands_of(momentum: Momentum) -> PostCommands:
    return PostCommands(momentum.database, momentum.platforms, momentum.publisher)


@commands.command("list", epilog="\b\nExamples:\n  momentum posts list --state unknown --state failed")
def list_posts(
    states: Annotated[list[PostState] | None, typer.Option("--state", help="May be repeated.")] = None,
    search: Annotated[str | None, typer.Option("--search", help="In the text.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    tenant: TenantOption = "default",
    database: DatabaseOption = DEFAULT.database,
    key_file: KeyFileOption = None,
) -> None:
    """List posts, latest first."""

    async def work(momentum: Momentum) -> None:
        wanted = PostFilter(tuple(states or ()), text=search)
        async with momentum.database.reading() as connection:
            page = await listing(connection, tenant, wanted, None, limit)
        for post in page.items:
            at = f"{post.scheduled_at:%Y-%m-%d %H:%M}Z" if post.scheduled_at else "-" * 17
            typer.echo(f"{post.id}  {post.state.value:10}  {at}  {title_of(post.content.text)}")

    opened(existing_settings(key_file=key_file, database=database), work)


@commands.command("show", epilog="\b\nExamples:\n  momentum posts show post_01k...")
def show(
    post_id: str,
    tenant: TenantOption = "default",
    database: DatabaseOption = DEFAULT.database,
    key_file: KeyFileOption = None,
) -> None:
    """Show a post and everything that happened to it."""

    async def work(momentum: Momentum) -> None:
        async with momentum.database.reading() as connection:
            post = await posts.get(connection, tenant, post_id)
            account = await accounts.get(connection, tenant, post.account_id)
            happened = [
                (one.at, one.kind, one.detail, one.actor) for one in await events.of_post(connection, post.id)
            ]
            happened += [
                (
                    one.started_at,
                    f"attempt {one.number}",
                    f"{one.outcome or 'running'} {one.error or ''}",
                    one.worker,
                )
                for one in await attempts.of_post(connection, post.id)
            ]
        typer.echo(f"{post.id}  {post.state.value}  version {post.version}  {account.author.name}")
        typer.echo(f"due {post.scheduled_at or '-'}  published {post.published_at or '-'}  {post.url or ''}")
        if post.error:
            typer.echo(f"error: {post.error} [{post.error_code}]")
        typer.echo(f"\n{post.content.text}\n")
        for at, kind, detail, actor in sorted(happened):
            typer.echo(f"{at:%Y-%m-%d %H:%M:%S}Z  {kind:16}  {detail}  ({actor})")

    opened(existing_settings(key_file=key_file, database=database), work)


@commands.command("import", epilog="\b\nExamples:\n  momentum posts import calendar.csv --dry-run")
def import_file(
    file: Annotated[Path, typer.Argument(help="CSV with account, text, scheduled_at, zone, media, ...")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file; store nothing.")] = False,
    partial: Annotated[bool, typer.Option("--partial", help="Store the valid rows of a bad file.")] = False,
    tenant: TenantOption = "default",
    database: DatabaseOption = DEFAULT.database,
    media: MediaOption = DEFAULT.media,
    key_file: KeyFileOption = None,
) -> None:
    """Import posts: all or none."""
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"file: {file} cannot be read ({problem})") from None

    async def work(momentum: Momentum) -> None:
        rows, created = await import_csv(
            commands_of(momentum), tenant, text, actor=ACTOR, dry_run=dry_run, partial=partial
        )
        for row in rows:
            for one in row.problems:
                typer.echo(f"line {row.line}: {one.field}: {one.message} [{one.code}]", err=True)
        typer.echo(f"{len(rows)} rows, {sum(row.ok for row in rows)} valid, {created} posts stored")
        if not dry_run and created < len(rows):
            raise Conflict("not all rows were stored: correct them, or use --partial for the valid ones")

    opened(existing_settings(key_file=key_file, database=database, media=media), work)


@commands.command("cancel")
def cancel(
    post_id: str,
    tenant: TenantOption = "default",
    database: DatabaseOption = DEFAULT.database,
    key_file: KeyFileOption = None,
) -> None:
    """Cancel a post that is not published yet."""
    _change(PostCommands.cancel, tenant, post_id, existing_settings(key_file=key_file, database=database))


@commands.command("publish")
def publish(
    post_id: str,
    tenant: TenantOption = "default",
    database: DatabaseOption = DEFAULT.database,
    key_file: KeyFileOption = None,
) -> None:
    """Plan a post for now. A running worker publishes it."""
    _change(
        PostCommands.publish_now, tenant, post_id, existing_settings(key_file=key_file, database=database)
    )


def _change(change: Callable[..., Awaitable[Saved]], tenant: str, post_id: str, settings: Settings) -> None:
    async def work(momentum: Momentum) -> Saved:
        return await change(commands_of(momentum), tenant, post_id, version=None, actor=ACTOR)

    saved: Saved = opened(settings, work)
    typer.echo(f"{saved.post.id} is {saved.post.state.value}")

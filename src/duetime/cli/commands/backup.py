"""`duetime backup` and `duetime restore`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from duetime import stores
from duetime.app.adoption import STAMP, fence, stamp_of
from duetime.app.store_copy import living
from duetime.cli.backend import find_store_url, refuse_server
from duetime.cli.command import command, standalone
from duetime.cli.format import plural, say
from duetime.cli.program import settings_of, value_option
from duetime.clock import wall_micros
from duetime.config import hide_password
from duetime.errors import ConfigError, Conflict
from duetime.model.codec import encode
from duetime.model.identity import Stamp
from duetime.model.instant import Micros, to_iso
from duetime.model.stored import Record
from duetime.stores.sqlite.backup import copy_file, read_record
from duetime.stores.sqlite.location import path_of

commands = standalone()

NEXT = "it starts nothing until `duetime adopt`; look first with `duetime adopt --plan`"
TOOLS = {
    "postgresql": "`pg_dump --format=custom`, or the backup of your PostgreSQL service",
    "postgres": "`pg_dump --format=custom`, or the backup of your PostgreSQL service",
    "mysql": "`mariadb-dump --single-transaction`, or `mariabackup`",
    "mariadb": "`mariadb-dump --single-transaction`, or `mariabackup`",
    "redis": "a copy of its RDB file (`redis-cli --rdb FILE`)",
    "rediss": "a copy of its RDB file (`redis-cli --rdb FILE`)",
}


@command(commands, "backup", "duetime backup /backups/duetime-monday.db")
def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write. It must not exist.")],
) -> None:
    """Write a consistent, checked copy of a SQLite store while nodes work. The other stores have tools of
    their own: see docs/backup.md."""
    source = _file_of(find_store_url(settings_of(context)), "back it up with")
    if not source.exists():
        raise ConfigError(f"store: there is no file {source}: name another with --store")
    taken_at = wall_micros()
    why = f"the store is a backup of {source}, taken at {to_iso(taken_at)}"
    size = copy_file(source, file, _record(why, taken_at))
    say(f"{file}: {size:,} bytes, checked")


@command(
    commands,
    "restore",
    "duetime restore /backups/duetime-monday.db --to sqlite:///duetime.db",
    "duetime restore --to postgresql://owner@db.example.org/duetime",
)
def restore(
    context: typer.Context,
    to: Annotated[str, value_option("--to", "URL", "The store. A SQLite file must not exist yet.")],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A backup of a SQLite store. Without it, the rows are there already: restored with the "
            "tools of the database.",
        ),
    ] = None,
) -> None:
    """Restore a backup, and have the store start nothing until `duetime adopt`."""
    refuse_server(settings_of(context))
    if file is None:
        asyncio.run(_fence(to))
        say(f"{hide_password(to)}: {NEXT}")
        return
    target = _file_of(to, "restore it with")
    if not file.exists():
        raise ConfigError(f"there is no file {file}: name a backup")
    stored = read_record(file, *STAMP)
    known = None if stored is None else stamp_of(stored)
    taken_at = 0 if known is None or known.fence is None else known.at
    when = f", a backup of {to_iso(taken_at)}" if taken_at else ""
    copy_file(file, target, _record(f"the store was restored from {file.absolute()}{when}", taken_at))
    say(f"{target}: restored; {NEXT}")


def _file_of(url: str, verb: str) -> Path:
    scheme = urlsplit(url).scheme.lower()
    if scheme == "sqlite":
        return path_of(url)
    tool = TOOLS.get(scheme)
    if tool is None:
        raise ConfigError(f"store: {hide_password(url)!r} is not a store that stays: {stores.KNOWN}")
    if verb == "restore it with":
        raise ConfigError(
            "--to: a backup file of Duetime is for SQLite; restore this database with its own tools, then "
            "run `duetime restore --to URL` without a file"
        )
    raise ConfigError(f"store: `duetime backup` is for SQLite; {verb} {tool} (docs/backup.md)")


def _record(why: str, at: Micros) -> Record:
    return Record(*STAMP, encode(asdict(Stamp("", "", at, why))), 0, None)


async def _fence(url: str) -> None:
    store = stores.from_url(url)
    if not store.capabilities.durable:
        raise ConfigError(f"--to: {url!r} ends with its process: name a store that stays")
    try:
        await store.open()
        if nodes := await living(store):
            raise Conflict(
                f"the store has {plural(len(nodes), 'living node')}: stop every node before you restore; the "
                "lease of a killed node ends by itself"
            )
        await fence(store, f"the store was restored at {to_iso(await store.time())}")
    finally:
        await store.close()

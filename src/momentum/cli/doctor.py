"""`momentum doctor`: can this process do its work with these settings?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import typer

from momentum.application import Momentum
from momentum.cli.options import (
    DEFAULT,
    DatabaseOption,
    KeyFileOption,
    MediaOption,
    QueueOption,
    existing_settings,
)
from momentum.errors import ConfigError
from momentum.settings import Settings

EXAMPLES = "\b\nExamples:\n  momentum doctor --database postgresql://momentum@db.example.org/momentum"
# The smallest GIF: one pixel.
PICTURE = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
)


def doctor(
    database: DatabaseOption = DEFAULT.database,
    media: MediaOption = DEFAULT.media,
    queue: QueueOption = None,
    key_file: KeyFileOption = None,
) -> None:
    """Check the settings: database, files, keys and platforms."""
    settings = existing_settings(key_file=key_file, database=database, media=media, queue=queue)
    problems = asyncio.run(_check(settings))
    if problems:
        raise ConfigError(f"{problems} of these need your attention")


async def _check(settings: Settings) -> int:
    found = 0
    async with Momentum.opened(settings, roles=("api",)) as momentum:
        typer.echo("ok       the database answers and has its tables")
        typer.echo("ok       the keys that encrypt tokens can be read")
        found += await _check_files(momentum)
        if not settings.linkedin.client_id:
            typer.echo("missing  MOMENTUM_LINKEDIN_CLIENT_ID: no account can be connected (docs/momentum.md)")
            found += 1
        for platform in momentum.platforms.values():
            for notice in platform.notices(datetime.now(UTC)):
                typer.echo(f"notice   {platform.title}: {notice}")
                found += 1
    return found


async def _check_files(momentum: Momentum) -> int:
    async def picture() -> AsyncIterator[bytes]:
        yield PICTURE

    try:
        stored = await momentum.media.put("doctor", "doctor.gif", picture())
        await momentum.media.delete(stored)
    except Exception as problem:  # whatever the storage says, a person must see it
        typer.echo(f"failed   files cannot be stored in {momentum.settings.media}: {problem}")
        return 1
    typer.echo("ok       files can be stored and deleted")
    return 0

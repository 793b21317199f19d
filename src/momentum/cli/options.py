"""Flags that several commands share, and the settings that they lead to. Every flag has a variable
MOMENTUM_*."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from momentum.database import Database
from momentum.errors import ConfigError
from momentum.platforms.linkedin.settings import LinkedInSettings
from momentum.secret_box import default_key_file, read_key_file
from momentum.settings import Settings

KEYS_VARIABLE = "MOMENTUM_SECRET_KEYS"
DATABASE = "The database: a SQLite file or a PostgreSQL server. Duetime's jobs are in it, too."
QUEUE = "A broker between the database and the workers, such as sqs://... or amqp://... Default: none."
MEDIA = "Where files are: file://FOLDER or s3://BUCKET/PREFIX (MOMENTUM_S3_ENDPOINT and AWS_* variables)."
KEY_FILE = (
    "The file with the keys that encrypt tokens; it is made if it does not exist. "
    f"{KEYS_VARIABLE} replaces it."
)

DatabaseOption = Annotated[
    str, typer.Option("--database", envvar="MOMENTUM_DATABASE", metavar="URL", help=DATABASE)
]
QueueOption = Annotated[
    str | None, typer.Option("--queue", envvar="MOMENTUM_QUEUE", metavar="URL", help=QUEUE)
]
MediaOption = Annotated[str, typer.Option("--media", envvar="MOMENTUM_MEDIA", metavar="URL", help=MEDIA)]
KeyFileOption = Annotated[
    Path | None, typer.Option("--key-file", envvar="MOMENTUM_KEY_FILE", metavar="FILE", help=KEY_FILE)
]
ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", envvar="MOMENTUM_CONCURRENCY", help="Posts handled at the same time.")
]
PlatformsOption = Annotated[
    list[str] | None,
    typer.Option("--platform", metavar="NAME", help="Publish only to this platform; may be repeated."),
]
DEFAULT = Settings()


def secret_keys(key_file: Path | None, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """From the variable, or from the key file."""
    given = environment.get(KEYS_VARIABLE, "").replace(",", " ").split()
    return tuple(given) or read_key_file(key_file or default_key_file(), create=True)


def linkedin_settings(environment: Mapping[str, str] = os.environ) -> LinkedInSettings:
    """From MOMENTUM_LINKEDIN_* variables: a secret does not belong on a command line, where others see it."""
    names = ("client_id", "client_secret", "version", "web_url", "api_url")
    given: dict[str, Any] = {
        name: environment[variable]
        for name in names
        if environment.get(variable := f"MOMENTUM_LINKEDIN_{name.upper()}")
    }
    for name in ("organizations", "pkce"):
        given[name] = is_on(environment, f"MOMENTUM_LINKEDIN_{name.upper()}")
    return LinkedInSettings(**given)


def is_on(environment: Mapping[str, str], variable: str) -> bool:
    text = environment.get(variable, "").lower()
    if text not in ("", "0", "1", "true", "false", "yes", "no"):
        raise ConfigError(f"{variable}: {text!r} is not a choice: use 1 or 0")
    return text in ("1", "true", "yes")


def require_database(url: str) -> None:
    """For commands that need a database that exists: they create none, and no key file either."""

    async def check() -> None:
        database = Database.of(url)
        try:
            await database.require()
        finally:
            await database.close()

    asyncio.run(check())


def existing_settings(*, database: str, key_file: Path | None = None, **given: Any) -> Settings:
    """The settings of a command that needs a database that exists."""
    require_database(database)
    return make_settings(key_file=key_file, database=database, **given)


def make_settings(*, key_file: Path | None = None, **given: Any) -> Settings:
    """The settings of one process."""
    chosen = {name: value for name, value in given.items() if value is not None}
    chosen.setdefault("linkedin", linkedin_settings())
    servers = os.environ.get("MOMENTUM_MASTODON_SERVERS", "").lower().replace(",", " ").split()
    made = Settings(
        secret_keys=secret_keys(key_file),
        mastodon=is_on(os.environ, "MOMENTUM_MASTODON"),
        mastodon_servers=tuple(servers),
        **chosen,
    )
    quota = os.environ.get("MOMENTUM_MEDIA_QUOTA")
    if quota is None:
        return made
    if not quota.isdecimal():
        raise ConfigError(f"MOMENTUM_MEDIA_QUOTA: {quota!r} is not a number of bytes")
    return replace(made, media_quota=int(quota))

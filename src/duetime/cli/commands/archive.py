"""`duetime archive`: move old finished jobs out of the store."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from duetime.app import App
from duetime.archive import Archive
from duetime.archives import archive_for
from duetime.cli.backend import open_app
from duetime.cli.command import command, standalone
from duetime.cli.format import plural, say, show
from duetime.cli.inputs import JsonFlag
from duetime.cli.program import settings_of, value_option
from duetime.config import Settings
from duetime.engine.plan.archiver import Archiver, ArchiveResult
from duetime.errors import ConfigError
from duetime.model import duration
from duetime.model.history import KeepRules

commands = standalone()


@command(
    commands,
    "archive",
    "duetime archive --to /archive",
    "duetime archive --to s3://bucket/duetime --older-than 7d",
    "duetime archive --to /archive --format parquet",
)
def archive(
    context: typer.Context,
    to: Annotated[
        str | None,
        value_option("--to", "FOLDER|URL", "A folder or s3://bucket/prefix; default: setting `archive`."),
    ] = None,
    older_than: Annotated[
        str | None,
        value_option("--older-than", "TIME", "Jobs that ended longer ago; without it, `retention`."),
    ] = None,
    form: Annotated[
        str | None,
        value_option("--format", "FORMAT", "jsonl or parquet; default: setting `archive_format`."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write old finished jobs to files, read the files back, then delete the jobs from the store. After an
    interruption run it again."""
    settings = settings_of(context)
    place = to or settings.archive
    if place is None:
        raise ConfigError("archive: name a place with --to: a folder or s3://bucket/prefix")
    made = archive_for(place, form or settings.archive_format)
    done = asyncio.run(_archive(settings, made, older_than))
    show(asdict(done), as_json, lambda _: _show(done))


def _show(done: ArchiveResult) -> None:
    files = plural(done.parts, "file")
    say(f"{plural(done.jobs, 'job')} moved to {files}, {done.bytes:,} bytes")


async def _archive(settings: Settings, archive: Archive, older_than: str | None) -> ArchiveResult:
    async with open_app(settings) as app:
        return await Archiver(app.store, archive, rules_of(app, settings, older_than)).run()


def rules_of(app: App, settings: Settings, older_than: str | None) -> KeepRules:
    """`--older-than` holds for all jobs that have no rule of their own."""
    return KeepRules(
        duration.parse(older_than or settings.retention, "--older-than"),
        None if settings.keep_failed is None else duration.parse(settings.keep_failed, "keep_failed"),
        {queue: duration.parse(kept, "keep_queues") for queue, kept in settings.keep_queues},
        {
            name: task.options.retention
            for name, task in app.tasks.items()
            if task.options.retention is not None
        },
    )

"""`momentum log`: the execution log."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from momentum.cli.options import DEFAULT, DatabaseOption
from momentum.cli.posts import TenantOption
from momentum.database import Database
from momentum.model import Outcome
from momentum.posts.log import LogFilter, log_csv, read_log

EXAMPLES = "\b\nExamples:\n  momentum log --outcome failed\n  momentum log --csv > log.csv"


def log(
    outcome: Annotated[Outcome | None, typer.Option(help="Only attempts that ended so.")] = None,
    post: Annotated[str | None, typer.Option(metavar="ID", help="Only of this post.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    csv: Annotated[bool, typer.Option("--csv", help="Everything, as CSV.")] = False,
    tenant: TenantOption = "default",
    database: DatabaseOption = DEFAULT.database,
) -> None:
    """Show the attempts to publish, newest first."""
    asyncio.run(_log(Database.of(database), tenant, LogFilter(post=post, outcome=outcome), limit, csv))


async def _log(database: Database, tenant: str, wanted: LogFilter, limit: int, csv: bool) -> None:
    try:
        await database.require()
        await database.migrate()
        if csv:
            async for chunk in log_csv(database, tenant, wanted):
                sys.stdout.write(chunk)
            return
        async with database.reading() as connection:
            page = await read_log(connection, tenant, wanted, None, limit)
        for line in page.items:
            one = line.attempt
            late, end = f"+{line.lateness_ms} ms", one.outcome or "running"
            error = f"  {one.error} [{one.error_code}]" if one.error else ""
            typer.echo(f"{one.started_at:%Y-%m-%d %H:%M:%S}Z  {one.post_id}  {end:9}  {late:>10}{error}")
    finally:
        await database.close()

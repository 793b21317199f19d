"""`duetime why`: one sentence that explains why a job or a schedule is as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duetime.cli.command import command
from duetime.cli.completion import complete_schedule
from duetime.cli.flags import JsonFlag

if TYPE_CHECKING:
    from duetime.cli.access import Access
    from duetime.remote.results import Why


def add_why(program: typer.Typer) -> None:
    command(program, "why", "duetime why 01935c2e-7b3a-7000-8000-000000000000", "duetime why nightly")(why)


def why(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="JOB|SCHEDULE", help="A job's id, or a schedule's name.", autocompletion=complete_schedule)
    ],
    as_json: JsonFlag = False,
) -> None:
    """Why a job has not started, or ended as it did; when a schedule fires next, or why it does not."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import say, show_json
    from duetime.cli.session import with_access

    found = with_access(context, lambda access: _explain(access, what))
    if as_json:
        show_json(plain(found))
        return
    say(found.why)
    if found.remedy is not None:
        say(f"-> {found.remedy}")


async def _explain(access: Access, what: str) -> Why:
    """An id is a job's, unless only a schedule has it."""
    from uuid import UUID

    from duetime.errors import JobNotFound, NotFound, ScheduleNotFound

    try:
        UUID(what)
    except ValueError:
        return await access.why_schedule(what)
    try:
        return await access.why_job(what)
    except JobNotFound:
        try:
            return await access.why_schedule(what)
        except ScheduleNotFound:
            raise NotFound(f"there is no job and no schedule {what!r}: `duetime job list` and `duetime schedule list` show them") from None

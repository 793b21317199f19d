"""`duetime why`: one sentence that explains the state of a job or a schedule."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime.cli.backend import Backend, find_job, with_backend
from duetime.cli.command import command, standalone
from duetime.cli.completion import complete_schedule
from duetime.cli.format import say, show
from duetime.cli.inputs import JsonFlag
from duetime.errors import JobNotFound, NotFound, ScheduleNotFound
from duetime.model.views import WhyView

commands = standalone()


@command(commands, "why", "duetime why 01935c2e-7b3a-7000-8000-000000000000", "duetime why nightly")
def why(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="JOB|SCHEDULE",
            help="A schedule's name, or a job's id, its first digits, or its last 8.",
            autocompletion=complete_schedule,
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Why a job has not started, or how it ended; when a schedule fires next, or why it does not fire."""
    show(with_backend(context, lambda backend: _explain(backend, what)), as_json, _show_reason)


def _show_reason(found: WhyView) -> None:
    say(found.why)
    if found.remedy is not None:
        say(f"-> {found.remedy}")


async def _explain(backend: Backend, what: str) -> WhyView:
    """A schedule's name, or the id of a job or a part of it."""
    try:
        return await backend.why_schedule(what)
    except ScheduleNotFound:
        try:
            return await backend.why_job(await find_job(backend, what))
        except JobNotFound:
            raise NotFound(
                f"no job or schedule {what!r}: see `duetime job list` and `duetime schedule list`"
            ) from None

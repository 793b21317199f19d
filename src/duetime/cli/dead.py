"""`duetime dead`: the dead letters, whose retries are spent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from duetime.cli.command import command, group
from duetime.cli.flags import JsonFlag, LimitFlag, PayloadFlag, YesFlag

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.handle import JobHandle

dead = group("Look through dead letters, and retry or discard them.")
MOST_AT_ONCE = 10_000

JobIds = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids of dead letters.")]
AllFlag = Annotated[bool, typer.Option("--all", help="All of them.")]


@command(dead, "list", "duetime dead list --json")
def list_dead(context: typer.Context, limit: LimitFlag = 50, as_json: JsonFlag = False) -> None:
    """Dead letters that nobody has retried or discarded yet."""
    from duetime.cli.output import show_json, show_table
    from duetime.cli.reading import open_dead_letters
    from duetime.cli.records import job_summary
    from duetime.cli.session import with_app

    found = with_app(context, lambda app: open_dead_letters(app, limit))
    if as_json:
        show_json([job_summary(handle.record) for handle in found])
        return
    show_table(("ID", "TASK", "SCHEDULE", "DIED", "TRIES", "REASON"), [_row(handle) for handle in found], "no dead letters")


@command(
    dead,
    "retry",
    "duetime dead retry 01935c2e-7b3a-7000-8000-000000000000",
    "duetime dead retry 01935c2e-7b3a-7000-8000-000000000000 --payload @mended.json",
    "duetime dead retry --all",
)
def retry(context: typer.Context, ids: JobIds = None, everything: AllFlag = False, payload: PayloadFlag = None) -> None:
    """Run dead letters again, each as a new job. --payload mends the arguments of one."""
    from duetime.cli.inputs import read_payload

    if payload is not None and (everything or len(ids or []) != 1):
        raise typer.BadParameter("--payload is for one dead letter: give its id alone")
    mended = None if payload is None else read_payload(payload)

    async def again(app: App, job_id: str) -> str:
        return f"{job_id} runs again as {(await app.retry_job(job_id, mended)).id}"

    _for_each(context, ids or [], everything, again)


@command(dead, "discard", "duetime dead discard 01935c2e-7b3a-7000-8000-000000000000")
def discard(context: typer.Context, ids: JobIds = None, everything: AllFlag = False, yes: YesFlag = False) -> None:
    """Take dead letters off the list; their records stay."""

    async def drop(app: App, job_id: str) -> str:
        await app.discard_job(job_id)
        return f"{job_id} discarded"

    if everything and not yes:
        typer.confirm("Discard all dead letters?", abort=True, err=True)
    _for_each(context, ids or [], everything, drop)


def _for_each(context: typer.Context, ids: list[str], everything: bool, act: Callable[[App, str], Awaitable[str]]) -> None:
    """What is refused does not hold up the others; the exit status tells of it."""
    from duetime.cli.failure import REFUSED, report
    from duetime.cli.output import say
    from duetime.cli.reading import open_dead_letters
    from duetime.cli.session import with_app
    from duetime.errors import DuetimeError, StoreError

    if everything == bool(ids):
        raise typer.BadParameter("give ids, or --all")

    async def work(app: App) -> int:
        refused = 0
        for job_id in [str(letter.id) for letter in await open_dead_letters(app, MOST_AT_ONCE)] if everything else ids:
            try:
                say(await act(app, job_id))
            except StoreError:
                raise
            except DuetimeError as problem:
                report(problem.message, problem.code)
                refused += 1
        return refused

    if with_app(context, work):
        raise typer.Exit(REFUSED)


def _row(handle: JobHandle) -> tuple[str, ...]:
    from duetime.cli.moments import full
    from duetime.clock import wall_micros
    from duetime.model.instant import to_datetime

    reason = (handle.error or "-").strip().splitlines()[-1]
    died = full(handle.finished_at, to_datetime(wall_micros()))
    return str(handle.id), handle.task, handle.schedule or "-", died, str(handle.attempt), reason

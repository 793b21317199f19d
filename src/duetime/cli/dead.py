"""`duetime dead`: the dead letters, whose retries are spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duetime.cli.choice import Choice, choosing
from duetime.cli.command import command, group
from duetime.cli.flags import ErrorFlag, JsonFlag, LimitFlag, OfTargetFlag, PayloadFlag
from duetime.cli.job import EXAMPLE, act_on_jobs, mended_payload

if TYPE_CHECKING:
    from duetime.cli.access import Access
    from duetime.remote.results import DeadGroup, JobSummary

dead = group("Look through dead letters, and retry or discard them.")

JobIds = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of dead letters.")]


@command(dead, "list", "duetime dead list --json", "duetime dead list --target invoice.send")
def list_dead(
    context: typer.Context, target: OfTargetFlag = None, error: ErrorFlag = None, limit: LimitFlag = 50, as_json: JsonFlag = False
) -> None:
    """Dead letters that nobody has retried or discarded yet."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import show_json, show_table
    from duetime.cli.session import with_access

    found = with_access(context, lambda access: access.dead_letters(target=target, error=error, limit=limit))
    if as_json:
        show_json(plain(found))
        return
    show_table(("ID", "TARGET", "SCHEDULE", "DIED", "TRIES", "REASON"), [_row(one) for one in found], "no dead letters")


@command(dead, "groups", "duetime dead groups", "duetime dead groups --json")
def groups(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Dead letters by what they died of, most first."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import say, show_json, show_table
    from duetime.cli.session import with_access

    found = with_access(context, lambda access: access.dead_groups())
    if as_json:
        show_json(plain(found))
        return
    show_table(("COUNT", "TARGET", "NEWEST", "OLDEST", "ERROR"), [_group_row(one) for one in found.items], "no dead letters")
    if not found.complete:
        say("note: there are older dead letters that were not counted")


@command(
    dead,
    "retry",
    f"duetime dead retry {EXAMPLE}",
    f"duetime dead retry {EXAMPLE} --payload @mended.json",
    "duetime dead retry --all --target invoice.send --yes",
)
@choosing(target=OfTargetFlag, error=ErrorFlag)
def retry(context: typer.Context, choice: Choice, ids: JobIds = None, payload: PayloadFlag = None) -> None:
    """Run dead letters again, each as a new job; or all that match. --payload mends the arguments of one."""
    mended = mended_payload(payload, ids, choice)

    async def again(access: Access, job_id: str) -> str:
        return f"{job_id} runs again as {(await access.retry_job(job_id, mended)).id}"

    act_on_jobs(context, "retry", "retried", choice, ids, again)


@command(dead, "discard", f"duetime dead discard {EXAMPLE}", "duetime dead discard --all --error 'ValueError: no such customer'")
@choosing(target=OfTargetFlag, error=ErrorFlag)
def discard(context: typer.Context, choice: Choice, ids: JobIds = None) -> None:
    """Take dead letters off the list, or all that match; their records stay."""

    async def drop(access: Access, job_id: str) -> str:
        await access.discard_job(job_id)
        return f"{job_id} discarded"

    act_on_jobs(context, "discard", "discarded", choice, ids, drop)


def _row(one: JobSummary) -> tuple[str, ...]:
    from duetime.cli.moments import full, now_here
    from duetime.cli.shown import target_text

    reason = (one.error or "-").strip().splitlines()[-1]
    died = full(one.finished_at, now_here())
    return str(one.id), target_text(one.target), one.schedule or "-", died, str(one.attempt), reason


def _group_row(one: DeadGroup) -> tuple[str, ...]:
    from duetime.cli.moments import full, now_here

    now = now_here()
    return f"{one.count:,}", one.target, full(one.newest, now), full(one.oldest, now), one.error or "-"
